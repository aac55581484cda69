------------------------------- MODULE Joint -------------------------------
(* One change of several voters at once, by each protocol that has one (ADR 0008), with elections between its steps, and the
   question when a leader may take it back (ADR 0060). The log, votes and commits are those of Quorate; the fast path and
   reads are left out. internal/model/joint explores the same, faster and further.

   The change is an entry "both", C(old,new), from Voters to NewVoters. "new" is C(new), which ends it; "old" is C(old) again,
   which takes it back. *)
EXTENDS Quorate

CONSTANTS
  Protocol,   \* "joint", "joint-early", "activate" or "apply"; "direct" asks one majority only, and is wrong
  NewVoters,
  WayBack     \* who takes a change back: "none", "committed" (who has committed in its term: ours), "any-leader", and
              \* "old-elects": any leader, which a majority of the old voters alone may elect

VARIABLES
  store,      \* protocol apply: how far a member applied
  decided     \* ghost: the change was committed, or could be told to a client

jointVars == <<store, decided>>
allVars == <<raftVars, jointVars>>

PlaceOf(l, kind) == LET at == {n \in 1..Len(l) : l[n].kind = kind} IN IF at = {} THEN 0 ELSE MaxOf(at)
Has(l, kind) == PlaceOf(l, kind) > 0
Half(l) == Has(l, "both") /\ ~Has(l, "new") /\ ~Has(l, "old")

\* The sets of voters in force at a member, each of which must agree. A protocol says when an entry counts: at append; by
\* activate as C(new) once it is known that the entry has committed; by apply once it was applied.
InForce(s) ==
  LET far == IF Protocol = "apply" THEN store[s] ELSE Len(log[s])
      at == {n \in 1..far : log[s][n].kind \in {"both", "new", "old"}}
      n == MaxOf(at) IN
  IF at = {} THEN {Voters}
  ELSE CASE log[s][n].kind = "old" -> {Voters}
         [] log[s][n].kind = "new" -> {NewVoters}
         [] Protocol = "direct" -> {NewVoters}
         [] Protocol = "activate" /\ commit[s] >= n -> {NewVoters}
         [] OTHER -> {Voters, NewVoters}
Agree(s, S) == \A V \in InForce(s) : IsQuorum(V, S)

--------------------------------------------------------------------------------
(* Raft's actions, where both sets of voters count. *)

\* Anybody may stand whose log others need, and counts itself only as a voter (ADR 66). By apply a candidate has applied all that
\* it knows to have committed.
JointCampaign(i) ==
  /\ (Protocol = "apply" => store[i] >= commit[i])
  /\ Stand(i) /\ UNCHANGED jointVars

JointWin(i) ==
  /\ Agree(i, votes[i]) \/ (WayBack = "old-elects" /\ Half(log[i]) /\ IsQuorum(Voters, votes[i]))
  /\ Lead(i, <<>>) /\ UNCHANGED jointVars

\* A leader commits as far as it can.
JointCommit(i) ==
  LET all == {n \in 1..Len(log[i]) : Countable(i, n) /\ Agree(i, Holders(term[i], n))} IN
  /\ all # {} /\ Committed(i, MaxOf(all))
  /\ decided' = (decided \/ (PlaceOf(log[i], "both") \in 1..MaxOf(all) /\ ~Has(log[i], "old")))
  /\ UNCHANGED store

\* An append brings no commit index: Learn does, and more than messages would.
JointReceive(s, t, n) ==
  /\ Receive(s, t, n, FALSE)
  /\ store' = [store EXCEPT ![s] = Min(@, Len(log'[s]))]
  /\ UNCHANGED decided

--------------------------------------------------------------------------------
(* What a member knows of commits matters to activate and apply only, where not only leaders act on it. *)

Knowing == Protocol \in {"activate", "apply"}
Learn(s) ==
  LET n == Shared(log[s], committed) IN
  /\ Knowing /\ n > commit[s]
  /\ commit' = [commit EXCEPT ![s] = n]
  /\ UNCHANGED <<term, voted, log, role, votes, history, leader, acked, told, committed, committedIn, jointVars>>

ApplyAll(s) == Protocol = "apply" /\ store[s] < commit[s] /\ store' = [store EXCEPT ![s] = commit[s]]
  /\ UNCHANGED <<raftVars, decided>>

Forget(s) == Knowing /\ (role[s] # "follower" \/ commit[s] > 1) /\ Restart(s, 1) /\ UNCHANGED jointVars

--------------------------------------------------------------------------------
(* The change. *)

JointAppend(i, kind) == LogAppend(i, Entry(kind, None, 0, term[i], None)) /\ UNCHANGED jointVars

Begin(i) == Open(i) /\ ~Has(log[i], "both") /\ JointAppend(i, "both")

\* Activate has no second entry.
End(i) ==
  /\ Protocol \notin {"activate", "direct"} /\ Open(i) /\ Half(log[i]) /\ i \in NewVoters
  /\ commit[i] >= PlaceOf(log[i], "both") /\ (Protocol = "apply" => store[i] >= PlaceOf(log[i], "both"))
  /\ JointAppend(i, "new")

\* By joint-early nothing is taken back that its leader knows to be decided.
TakeBack(i) ==
  /\ WayBack # "none" /\ role[i] = "leader" /\ Half(log[i])
  /\ WayBack = "committed" => Open(i)
  /\ Protocol = "joint-early" => commit[i] < PlaceOf(log[i], "both")
  /\ JointAppend(i, "old")

\* A write after the change, which the new voters alone may commit.
WriteAfter(i) == Protocol \in {"activate", "direct"} /\ Open(i) /\ log[i][Len(log[i])].kind = "both" /\ JointAppend(i, "noop")

JointInit == RaftInit(First) /\ store = [s \in Server |-> 1] /\ decided = FALSE
JointNext ==
  \/ \E i \in Server :
       JointCampaign(i) \/ JointWin(i) \/ JointCommit(i) \/ Begin(i) \/ End(i) \/ TakeBack(i) \/ WriteAfter(i)
  \/ \E s \in Server : Learn(s) \/ ApplyAll(s) \/ Forget(s)
  \/ \E v, c \in Server : Vote(v, c, TRUE) /\ UNCHANGED jointVars
  \/ \E s \in Server, t \in Terms, n \in 1..MaxLog : JointReceive(s, t, n)

--------------------------------------------------------------------------------
(* Law: by the protocols that report a change when its first entry has committed, what was decided is not taken back. *)
DecidedStays == Protocol # "joint" /\ decided => ~Has(committed, "old")
=============================================================================
