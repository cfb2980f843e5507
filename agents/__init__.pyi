from .approval.call_app import (
    check_answerable as check_answerable,
    examine_call as examine_call,
    make_call as make_call,
)
from .approval.supervision import Supervision as Supervision
from .calls.call_context import Limits as Limits
from .calls.outcome import Call as Call
from .calls.plan import (
    Mode as Mode,
    Plan as Plan,
    Question as Question,
    Step as Step,
    StepResult as StepResult,
)
from .calls.refusal import Refusal as Refusal
from .calls.review import AnswerError as AnswerError, Decision as Decision
from .calls.run_claim import (
    ConcurrentRunError as ConcurrentRunError,
    checkpointer as checkpointer,
    in_threads as in_threads,
)
from .calls.token_usage import Price as Price, Usage as Usage
from .models.chat_models import (
    ModelError as ModelError,
    chat_model as chat_model,
    normalize as normalize,
    without_streaming as without_streaming,
)
from .models.prompts import Prompts as Prompts
from .no_model.no_model import NoModel as NoModel
from .planning.planner import (
    AnswerTask as AnswerTask,
    ModelReasoner as ModelReasoner,
    PlanDraft as PlanDraft,
    PlanRevision as PlanRevision,
    PlanTask as PlanTask,
    Reasoner as Reasoner,
    decompose as decompose,
)
from .planning.revision import Revision as Revision, revise as revise
from .registry.assurance import Assurance as Assurance
from .registry.binding import BoundTool as BoundTool, unsettled_calls as unsettled_calls
from .registry.checked_call import CheckedCall as CheckedCall
from .registry.tool_registry import ApprovalPolicy as ApprovalPolicy, ToolRegistry as ToolRegistry
from .servers.a2a.agent import A2AAgent as A2AAgent
from .servers.session_pool import SessionPool as SessionPool
from .work.context import Brief as Brief, synthesize as synthesize
from .work.equipment import Equipment as Equipment
from .work.tool_requests import ToolRequests as ToolRequests
from .work.worker_agent import carry_out as carry_out, worker as worker
