module.exports = { Model: class {} };
