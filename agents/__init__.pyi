from .a2a import A2AAgent as A2AAgent
from .answer import synthesize as synthesize
from .approval import check_answerable as check_answerable, supervised as supervised
from .assurance import ApprovalPolicy as ApprovalPolicy, Assurance as Assurance
from .background import BackgroundLoop as BackgroundLoop
from .bound import BoundTool as BoundTool, unsettled as unsettled
from .brief import Brief as Brief, Offer as Offer
from .checkpoints import checkpointer as checkpointer, in_threads as in_threads
from .decisions import AnswerError as AnswerError, Decision as Decision, Verdict as Verdict
from .judge import Judged as Judged, judge_proposals as judge_proposals
from .keyless import KeylessModel as KeylessModel
from .limits import Limits as Limits
from .model_output import normalize as normalize, unstreamed as unstreamed
from .models import ModelError as ModelError, chat_model as chat_model
from .plan import Call as Call, Plan as Plan, Step as Step, StepResult as StepResult
from .planner import decompose as decompose
from .prompts import Prompts as Prompts
from .registry import Guard as Guard, ToolRegistry as ToolRegistry
from .requests import ToolRequests as ToolRequests
from .sessions import SessionPool as SessionPool
from .sole_run import ConcurrentRunError as ConcurrentRunError
from .watched_call import Supervision as Supervision
from .worker import Equipment as Equipment, carry_out as carry_out, worker as worker
