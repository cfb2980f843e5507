from .a2a import A2AAgent as A2AAgent
from .approval.assurance import ApprovalPolicy as ApprovalPolicy, Assurance as Assurance
from .approval.call_case import Supervision as Supervision
from .approval.call_supervision import check_answerable as check_answerable, supervised as supervised
from .approval.checkpoints import checkpointer as checkpointer, in_threads as in_threads
from .approval.decisions import AnswerError as AnswerError, Decision as Decision, Verdict as Verdict
from .approval.run_claim import ConcurrentRunError as ConcurrentRunError
from .models.chat_models import ModelError as ModelError, chat_model as chat_model
from .models.dependency_judge import Judged as Judged, judge_proposals as judge_proposals
from .models.model_output import normalize as normalize, unstreamed as unstreamed
from .models.prices import Cost as Cost, Price as Price, Prices as Prices, read_prices as read_prices
from .models.prompts import Prompts as Prompts
from .models.token_usage import ModelUsage as ModelUsage, Usage as Usage
from .no_model import NoModel as NoModel
from .planning.conversation import self_contained as self_contained
from .planning.drafts import PlanDraft as PlanDraft, PlanRevision as PlanRevision, Question as Question
from .planning.plan import Call as Call, Mode as Mode, Plan as Plan, Step as Step, StepResult as StepResult
from .planning.planner import decompose as decompose
from .planning.reviser import revise as revise
from .planning.revision import Revision as Revision
from .reasoner import (
    AnswerTask as AnswerTask,
    ModelReasoner as ModelReasoner,
    PlanTask as PlanTask,
    Reasoner as Reasoner,
)
from .servers.background_loop import BackgroundLoop as BackgroundLoop
from .servers.limits import Limits as Limits
from .servers.session_pool import SessionPool as SessionPool
from .tools.binding import BoundTool as BoundTool, unsettled as unsettled
from .tools.registry import Guard as Guard, ToolRegistry as ToolRegistry
from .work.answer import synthesize as synthesize
from .work.brief import Brief as Brief
from .work.equipment import Equipment as Equipment
from .work.need_tool import ToolRequests as ToolRequests
from .work.worker_agent import carry_out as carry_out, worker as worker
