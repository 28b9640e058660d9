"""Activities: operations that are functions of the business instead of calls over HTTP."""

import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, overload

from engine.declarations.activities import ActivityFunction, Call
from engine.declarations.faults import Fault, FaultCode
from engine.domain.exact_models import as_json
from engine.workflow.model import Model, recorded

RequestT = TypeVar("RequestT", bound=Model)
ResponseT = TypeVar("ResponseT", bound=Model)


class ActivityDecorator(Protocol[RequestT, ResponseT]):
    """Decorates the function of an activity.

    The function gets the call and the request, and returns the response.
    """

    @overload
    def __call__(
        self, work: Callable[[Call, RequestT], Coroutine[Any, Any, ResponseT]], /
    ) -> Callable[[Call, RequestT], Coroutine[Any, Any, ResponseT]]: ...

    @overload
    def __call__(
        self, work: Callable[[Call, RequestT], ResponseT], /
    ) -> Callable[[Call, RequestT], ResponseT]: ...


@dataclass(frozen=True)
class Activity:
    """A function as its author wrote it, with the models of its operation."""

    work: Callable[..., Any]
    operation: str
    request: type[Model]
    response: type[Model]

    @property
    def place(self) -> str:
        """The file and line of the function."""
        if not inspect.isfunction(self.work):
            return repr(self.work)
        code = self.work.__code__
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}"

    @cached_property
    def signature(self) -> inspect.Signature:
        """The function's signature with evaluated annotations.

        Raises NameError for an unknown name in a quoted annotation.
        """
        return inspect.signature(self.work, eval_str=True)

    def code(self) -> ActivityFunction:
        """Return the activity in the form that the engine runs."""
        return ActivityFunction(
            name=f"{self.work.__module__}.{getattr(self.work, '__qualname__', '?')}",
            read=partial(recorded, self.request),
            work=self.work,
            write=self._written,
            in_thread=not inspect.iscoroutinefunction(self.work),
        )

    def _written(self, answer: Any) -> Mapping[str, Any]:
        if not isinstance(answer, self.response):
            raise TypeError(f"{type(answer).__name__} is no {self.response.__name__}")
        return as_json(answer)

    def faults(self) -> Iterator[Fault]:
        """Yield the faults of the function's signature, each with its place."""
        for fault in self._faults():
            yield fault.within(f"{self.place}: operation {self.operation}")

    def _faults(self) -> Iterator[Fault]:
        generates = inspect.isgeneratorfunction(self.work) or inspect.isasyncgenfunction(self.work)
        if generates or not inspect.isfunction(self.work):
            yield Fault(FaultCode.ACTIVITY_NOT_A_FUNCTION)
            return
        try:
            signature = self.signature
        except NameError as error:
            yield Fault(FaultCode.TYPES_UNREADABLE, message=str(error))
            return
        try:
            call, ask = signature.bind(Call, self.request).arguments
        except (TypeError, ValueError):
            yield Fault(FaultCode.ACTIVITY_PARAMETERS, model=self.request.__name__)
            return
        for name, given in ((call, Call), (ask, self.request)):
            wanted = signature.parameters[name].annotation
            if not _is_one(given, wanted):
                yield Fault(
                    FaultCode.ACTIVITY_PARAMETER_TYPE,
                    parameter=name,
                    given=type_name(given),
                    declared=type_name(wanted),
                )
        if not _is_one(signature.return_annotation, self.response):
            yield Fault(
                FaultCode.RETURN_TYPE,
                expected=self.response.__name__,
                returned=type_name(signature.return_annotation),
            )


def _is_one(kind: Any, wanted: Any) -> bool:
    return isinstance(kind, type) and isinstance(wanted, type) and issubclass(kind, wanted)


def type_name(annotation: Any) -> str | None:
    """Return the name of a type as its author wrote it, or None if there is no annotation."""
    if annotation is inspect.Signature.empty:
        return None
    return str(getattr(annotation, "__name__", annotation))
