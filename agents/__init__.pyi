from .approval.questions import AnswerError as AnswerError, Decision as Decision, Verdict as Verdict
from .approval.supervised_call import (
    Supervision as Supervision,
    check_answerable as check_answerable,
    supervised as supervised,
)
from .calls.limits import Limits as Limits
from .calls.plan import Call as Call, Mode as Mode, Plan as Plan, Step as Step, StepResult as StepResult
from .calls.questions import Question as Question
from .calls.run_claim import (
    ConcurrentRunError as ConcurrentRunError,
    checkpointer as checkpointer,
    in_threads as in_threads,
)
from .calls.token_usage import (
    Cost as Cost,
    ModelUsage as ModelUsage,
    Price as Price,
    Prices as Prices,
    Usage as Usage,
    read_prices as read_prices,
)
from .models.chat_models import ModelError as ModelError, chat_model as chat_model
from .models.dependency_judge import Judged as Judged, judge_proposals as judge_proposals
from .models.model_output import normalize as normalize, unstreamed as unstreamed
from .models.prompts import Prompts as Prompts
from .no_model import NoModel as NoModel
from .planning.conversation import self_contained as self_contained
from .planning.drafts import PlanDraft as PlanDraft, PlanRevision as PlanRevision
from .planning.planner import decompose as decompose
from .planning.reviser import revise as revise
from .planning.revision import Revision as Revision
from .reasoner import (
    AnswerTask as AnswerTask,
    ModelReasoner as ModelReasoner,
    PlanTask as PlanTask,
    Reasoner as Reasoner,
)
from .registry.assurance import ApprovalPolicy as ApprovalPolicy, Assurance as Assurance
from .registry.binding import BoundTool as BoundTool, unsettled as unsettled
from .registry.tool_registry import ToolRegistry as ToolRegistry
from .servers.a2a import A2AAgent as A2AAgent
from .servers.session_pool import SessionPool as SessionPool
from .work.answer import synthesize as synthesize
from .work.brief import Brief as Brief
from .work.equipment import Equipment as Equipment
from .work.need_tool import ToolRequests as ToolRequests
from .work.worker_agent import carry_out as carry_out, worker as worker
