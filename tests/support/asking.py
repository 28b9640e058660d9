"""A small business that asks people: for pictures, beside a check, and then for an approval."""

from datetime import timedelta

from engine.workflow import UNDO, Agent, Model, Operation, Personal, Workflow, application

DAYS = timedelta(days=1)


class Request(Model):
    """The payload."""

    who: Personal[str]


class Question(Model):
    """What is asked."""

    text: str


class Pictures(Model):
    """The answer of the customer."""

    urls: tuple[str, ...]
    by: Personal[str] | None = None


class Approval(Model):
    """The answer of a colleague."""

    limit: int


class Work(Model):
    """What is asked of the service."""

    detail: str


class Office(Agent):
    """The only service."""

    check = Operation(Work)
    uncheck = Operation(Work)
    pay = Operation(Work)


office = Office("office")
asking = Workflow("asking", Request)


@asking.step(office.check, undo=office.uncheck, on_failure=UNDO)
def check(request: Request) -> Work:
    """Check the request."""
    return Work(detail="check")


@asking.wait_for(Pictures, within=5 * DAYS, attempts=3, on_failure=UNDO)
def pictures(request: Request) -> Question:
    """The customer sends pictures."""
    return Question(text=f"Please send pictures, {request.who}")


@asking.wait_for(Approval, within=2 * DAYS, after=[check])
def approval(request: Request, pictures: Pictures) -> Question:
    """A colleague approves."""
    return Question(text=f"{len(pictures.urls)} pictures")


@asking.step(office.pay)
def pay(request: Request, approval: Approval) -> Work:
    """Pay."""
    return Work(detail=str(approval.limit))


ASKING = application(asking, agents=[office])
ADA = Request(who="Ada")
SENT = Pictures(urls=("https://pictures.example/1",), by="Ada")
YES = Approval(limit=100)


both = Workflow("both", Request)
"""Two answers at once, one of which is due at once, beside a step and before another."""


@both.step(office.check)
def first(request: Request) -> Work:
    """Check the request."""
    return Work(detail=request.who)


@both.wait_for(Pictures, within=timedelta(seconds=1), attempts=2)
def soon(request: Request) -> Question:
    """An answer that is due soon."""
    return Question(text=request.who)


@both.wait_for(Approval, within=2 * DAYS)
def later(request: Request) -> Question:
    """An answer that is due later."""
    return Question(text=request.who)


@both.step(office.pay, after=[soon])
def last(request: Request) -> Work:
    """Pay."""
    return Work(detail=request.who)


BOTH = application(both, agents=[office])
