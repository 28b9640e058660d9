"""Services and their operations, as a business declares them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import timedelta
from typing import Any, ClassVar, Generic, TypeVar, overload

from engine.declarations import business
from engine.declarations.credentials import Auth
from engine.declarations.faults import Fault, FaultCode
from engine.declarations.service_forms import Body, Form, OperationRoute
from engine.declarations.workflow import DeclarationError
from engine.workflow import options
from engine.workflow.code import Activity, ActivityDecorator, RequestT, ResponseT
from engine.workflow.examples import examples_of
from engine.workflow.model import Model

RequestT_contra = TypeVar("RequestT_contra", bound=Model, contravariant=True)
ResponseT_co = TypeVar("ResponseT_co", bound=Model, covariant=True)


class Nothing(Model):
    """The response of an operation whose answer is not kept."""


class Operation(Generic[RequestT_contra, ResponseT_co]):
    """An operation of a service, with the models of its request and its response.

    An operation is an attribute of a class of agents, which gives it its name: `book_car` is sent
    as `book-car`. It is called by `POST /<name>`, unless `method` or `path` say otherwise.

        class Cars(Agent):
            book_car = Operation(CarRequest, CarBooking)
            find = Operation(FindRequest, Car, method="GET", path="/cars/{model}")
    """

    @overload
    def __init__(
        self: "Operation[RequestT_contra, Nothing]",
        request: type[RequestT_contra],
        *,
        name: str | None = None,
        method: str = "POST",
        path: str | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        request: type[RequestT_contra],
        response: type[ResponseT_co],
        *,
        name: str | None = None,
        method: str = "POST",
        path: str | None = None,
    ) -> None: ...

    def __init__(
        self,
        request: type[RequestT_contra],
        response: type[Model] = Nothing,
        *,
        name: str | None = None,
        method: str = "POST",
        path: str | None = None,
    ) -> None:
        self.request = request
        self.response = response
        self.name = name or ""
        self.route = OperationRoute(method=method, path=path)
        """The method and path of the call."""
        if self.route != OperationRoute() and response is Nothing:
            self.route = replace(self.route, answer_may_be_empty=True)
        self.service: type[Agent] | None = None
        """The class that declares the operation. None for an operation that belongs to no class."""

    @property
    def capability(self) -> str:
        """The capability that a step with this operation needs."""
        return self.service.capability if self.service else ""

    def __set_name__(self, owner: "type[Agent]", name: str) -> None:
        self.service = owner
        self.name = self.name or dashed(name)


KINDS: Mapping[str, Any] = {
    "name": str,
    "address": str,
    "optional": bool,
    "calls_in_flight": int,
    "refusals": Sequence,
    "provider": str,
    "answer_within": timedelta,
    "calls_back": bool,
    "remembers_refusals": bool,
    "keys_last": timedelta,
    "refusal": str,
    "headers": Mapping,
    "key_header": str,
    "body": Body,
    "auth": Auth,
    "reads": Sequence,
}
"""The type of each field of an agent."""
KINDS_WITHIN: Mapping[str, type] = {"refusals": int, "headers": str, "reads": str}
"""The type of the items in each list or mapping of an agent."""


@dataclass(frozen=True)
class Agent:
    """Base of the services.

    A subclass names a capability and its operations, and an instance is an agent. Two instances of
    one class are two agents with the same capability. All fields are explained in
    `engine.declarations.business.AgentDefinition`.

        cars = Cars("cars", refusal="no car is free")
    """

    name: str
    _: KW_ONLY
    address: str | None = None
    """The setting with the address of the service. By default it is the agent's name and `_URL`.

    A service has no address if all of its operations are activities.
    """
    optional: bool = False
    calls_in_flight: int = 100
    refusals: tuple[int, ...] = ()
    provider: str | None = None
    answer_within: timedelta | None = None
    calls_back: bool = False
    remembers_refusals: bool = False
    keys_last: timedelta | None = None
    refusal: str = "refused"
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Headers for every call. They must not contain secrets."""
    key_header: str = "Idempotency-Key"
    body: Body = Body.ENVELOPE
    auth: Auth | None = None
    reads: tuple[str, ...] = ()
    """The settings that the agent's activities read, through their call."""
    functions: list[Activity] = field(default_factory=list, init=False, repr=False, compare=False)
    """The agent's activities, added by `activity`."""
    capability: ClassVar[str] = ""
    """The capability of the agent: the dashed name of its class, such as `car-rental` for
    `CarRental`."""

    def __init_subclass__(cls, *, capability: str | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.capability = capability or dashed(cls.__name__)
        for attribute, operation in cls.operations().items():
            if operation.service is not cls:
                setattr(cls, attribute, inherited := copy(operation))
                inherited.service = cls

    def activity(
        self, operation: Operation[RequestT, ResponseT]
    ) -> ActivityDecorator[RequestT, ResponseT]:
        """Run the operation as the decorated function instead of a call over HTTP.

        A plain function runs in a thread. An async function runs on the event loop, and must not
        block it.

            @cars.activity(Cars.book_car)
            async def book(call: Call, request: CarRequest) -> CarBooking: ...
        """

        def add(work: Any) -> Any:
            self.functions.append(
                Activity(work, operation.name, operation.request, operation.response)
            )
            return work

        return add

    def declaration(self) -> business.AgentDefinition:
        """Return the agent in the form that the engine runs.

        Raises `DeclarationError` for a value of the wrong type, for a status that cannot be a
        refusal, and for an operation with two routes.
        """
        if faults := [fault.within(f"agent {self.name}") for fault in self._wrong_types()]:
            raise DeclarationError(faults)
        return business.AgentDefinition(
            name=self.name,
            offers=self.capability,
            address=self._address(),
            optional=self.optional,
            calls_in_flight=self.calls_in_flight,
            refusals=self.refusals,
            provider=self.provider,
            answer_within=self.answer_within,
            calls_back=self.calls_back,
            remembers_refusals=self.remembers_refusals,
            keys_last=self.keys_last,
            refusal=self.refusal,
            answers=examples_of(
                (operation.name, operation.response) for operation in self.operations().values()
            ),
            form=self._form(),
            auth=self.auth,
            code={function.operation: function.code() for function in self.functions},
            reads=self.reads,
        )

    def _wrong_types(self) -> Iterator[Fault]:
        """Yield a fault for each field whose value, or an item of it, has the wrong type."""
        for name, kind in KINDS.items():
            value = getattr(self, name)
            wrong = list(options.of_type(name, value, kind))
            yield from wrong
            if name in KINDS_WITHIN and not wrong:
                within = value.values() if isinstance(value, Mapping) else value
                for part in within:
                    yield from options.of_type(name, part, KINDS_WITHIN[name])

    def _address(self) -> str:
        names = {operation.name for operation in self.operations().values()}
        if names and names <= {function.operation for function in self.functions}:
            return ""
        return self.address or f"{self.name.replace('-', '_').upper()}_URL"

    def _form(self) -> Form:
        return Form(
            headers=self.headers, key_header=self.key_header, body=self.body, routes=self._routes()
        )

    def _routes(self) -> Mapping[str, OperationRoute]:
        """Return the routes of operations that declare their own method or path."""
        routes: dict[str, OperationRoute] = {}
        for operation in self.operations().values():
            if routes.setdefault(operation.name, operation.route) != operation.route:
                fault = Fault(FaultCode.TWO_ROUTES, f"agent {self.name}", operation=operation.name)
                raise DeclarationError([fault])
        return {name: route for name, route in routes.items() if route != OperationRoute()}

    @classmethod
    def operations(cls) -> Mapping[str, Operation[Any, Any]]:
        attributes: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            attributes |= vars(base)
        return {name: value for name, value in attributes.items() if isinstance(value, Operation)}


def declarations(agents: Sequence[Agent]) -> Sequence[business.AgentDefinition]:
    return [agent.declaration() for agent in agents]


def dashed(name: str) -> str:
    """Return the name as messages and rows have it: `BookCar` and `book_car` become `book-car`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()
