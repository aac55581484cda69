------------------------------ MODULE FastPath ------------------------------
(* One round trip: records at witnesses (CURP: Park and Ousterhout, NSDI 2019), with revisions that no failure can change
   (docs/fast-path.md, ADR 0014). A proposal under one revision, term and config id is an attempt. In ADR 0014 each member
   chooses the revision; that is as if the proposer had sent each of them another attempt.

   Left to internal/model: the result of a command beside its revision, aborts, snapshots, and barriers. *)
EXTENDS Quorate

CONSTANTS
  Proposal,
  Keys,           \* [Proposal -> set of keys]
  Revisions,      \* revisions that attempts may carry
  MaxAttempts,
  SuperLess       \* 0; 1 lets one voter less decide (a mutant)

VARIABLES
  applied,        \* volatile: how far a member applied
  pool,           \* durable: attempts that it holds as a witness
  held,           \* held[c][v]: what came with v's vote for candidate c
  attempts,       \* all that were sent
  accepted,       \* pairs <<attempt, member>>
  fast,           \* pairs <<attempt, leader>>: answered before they committed
  done,           \* ghost: the revision that was reported to the proposer, or 0
  floor           \* ghost: the largest revision reported before the proposal was invoked

fastVars == <<applied, pool, held, attempts, accepted, fast, done, floor>>
vars == <<raftVars, fastVars>>

Recovery(V) == Majority(V) \div 2 + 1
Super(V) == Cardinality(V) - Majority(V) + Recovery(V)

--------------------------------------------------------------------------------
(* The store is a function of the log: its revision, and the revision of each proposal, 0 if it was not applied. An exact
   entry that comes too late for its revision is skipped. *)
RECURSIVE StoreAt(_, _)
StoreAt(l, n) ==
  IF n = 0 THEN [rev |-> 1, row |-> [p \in Proposal |-> 0]]
  ELSE LET st == StoreAt(l, n - 1)
           e == l[n]
           next == IF e.kind = "slow" THEN st.rev + 1 ELSE e.rev IN
       IF e.kind \notin {"slow", "exact"} THEN st
       ELSE IF st.row[e.prop] # 0 \/ next <= st.rev THEN st
       ELSE [rev |-> next, row |-> [st.row EXCEPT ![e.prop] = next]]

Skipped(l, n, p, r) ==
  \E k \in 1..n : l[k].kind = "exact" /\ l[k].prop = p /\ l[k].rev = r /\ StoreAt(l, k).row[p] = 0

Unapplied(s) == {log[s][n] : n \in (applied[s] + 1)..Len(log[s])}

\* An upper bound of the revision of every entry in the log.
RECURSIVE Bound(_, _, _)
Bound(l, from, b) ==
  IF from > Len(l) THEN b
  ELSE Bound(l, from + 1, CASE l[from].kind = "slow" -> b + 1 [] l[from].kind = "exact" -> Max(b, l[from].rev) [] OTHER -> b)
BoundOf(s) == Bound(log[s], applied[s] + 1, StoreAt(log[s], applied[s]).rev)

Meets(p, q) == Keys[p] \cap Keys[q] # {}

\* Whether a member may accept: nothing unapplied touches the keys, and the revision is above all that it knows.
Fits(s, a) ==
  /\ \A e \in Unapplied(s) : e.kind \in {"slow", "exact"} => ~Meets(e.prop, a.prop)
  /\ \A e \in Unapplied(s) : e.kind # "config"
  /\ \A o \in pool[s] : ~Meets(o.prop, a.prop) /\ o.rev < a.rev
  /\ a.rev > BoundOf(s)

\* Whether a log decides a proposal, or has it under way; a skipped entry counts as absent.
Known(s, p) ==
  \/ StoreAt(log[s], applied[s]).row[p] # 0
  \/ \E e \in Unapplied(s) : e.kind \in {"slow", "exact"} /\ e.prop = p

--------------------------------------------------------------------------------
Send(p, r, via) ==
  LET a == [prop |-> p, rev |-> r, term |-> term[via], id |-> ConfigId(log[via])] IN
  /\ done[p] = 0 /\ a \notin attempts /\ Cardinality(attempts) < MaxAttempts
  /\ attempts' = attempts \cup {a}
  /\ floor' = IF \E o \in attempts : o.prop = p THEN floor
              ELSE [floor EXCEPT ![p] = MaxOf({done[q] : q \in Proposal} \cup {0})]
  /\ UNCHANGED <<raftVars, applied, pool, held, accepted, fast, done>>

Record(s, a) ==
  /\ a \in attempts /\ a.term = term[s] /\ a.id = ConfigId(log[s]) /\ role[s] # "leader"
  /\ s \in VotersOf(log[s]) /\ <<a, s>> \notin accepted /\ Fits(s, a)
  /\ pool' = [pool EXCEPT ![s] = @ \cup {a}]
  /\ accepted' = accepted \cup {<<a, s>>}
  /\ UNCHANGED <<raftVars, applied, held, attempts, fast, done, floor>>

\* The leader fixes the revision and answers at once, or appends the proposal as any other. The two answer sets of one
\* attempt are apart: who held it, and which leader logged it.
Propose(i, a) ==
  /\ a \in attempts /\ role[i] = "leader" /\ a.term = term[i] /\ a.id = ConfigId(log[i]) /\ ~Known(i, a.prop)
  /\ IF Open(i) /\ Fits(i, a)
     THEN LogAppend(i, Entry("exact", a.prop, a.rev, term[i], i)) /\ fast' = fast \cup {<<a, i>>}
     ELSE LogAppend(i, Entry("slow", a.prop, 0, term[i], None)) /\ UNCHANGED fast
  /\ UNCHANGED <<applied, pool, held, attempts, accepted, done, floor>>

Report(p, r) == done' = [done EXCEPT ![p] = r] /\ UNCHANGED <<raftVars, applied, pool, held, attempts, accepted, fast, floor>>

\* The proposer adds up answers that bear one revision, term and config id. It knows the voters of that configuration.
VotersUnder(id) == IF id = <<0, 0>> THEN Voters ELSE CHOOSE V \in SUBSET Server :
  \E t \in Terms : id[1] <= Len(history[t]) /\ history[t][id[1]].kind = "config" /\ history[t][id[1]].term = id[2] /\
    history[t][id[1]].prop = V
Decide(a) ==
  /\ done[a.prop] = 0
  /\ \E i \in Server : <<a, i>> \in fast /\
       LET V == VotersUnder(a.id) IN
       Cardinality(({i} \cup {s \in Server : <<a, s>> \in accepted}) \cap V) >= Super(V) - SuperLess
  /\ Report(a.prop, a.rev)

\* Any member that has applied the proposal answers.
Answer(s, p) ==
  /\ done[p] = 0 /\ StoreAt(log[s], applied[s]).row[p] # 0
  /\ Report(p, StoreAt(log[s], applied[s]).row[p])

\* A record leaves the pool when its proposal was applied, or when the entry of its own revision was skipped.
Apply(s, n) ==
  /\ n \in (applied[s] + 1)..commit[s]
  /\ applied' = [applied EXCEPT ![s] = n]
  /\ pool' = [pool EXCEPT ![s] = {a \in @ : StoreAt(log[s], n).row[a.prop] = 0 /\ ~Skipped(log[s], n, a.prop, a.rev)}]
  /\ UNCHANGED <<raftVars, held, attempts, accepted, fast, done, floor>>

--------------------------------------------------------------------------------
(* Raft's actions, with what the fast path adds to them. *)

\* What a member acknowledged and has not applied: its pool, and what it answered as a leader.
Answered(s, e) == {f[1] : f \in {g \in fast : g[2] = s /\ g[1].prop = e.prop /\ g[1].rev = e.rev /\ g[1].term = e.term}}
Acknowledged(s) == pool[s] \cup UNION {Answered(s, e) : e \in {x \in Unapplied(s) : x.kind = "exact" /\ x.by = s}}

FastCampaign(i) ==
  /\ Campaign(i)
  /\ held' = [held EXCEPT ![i] = [v \in Server |-> IF v = i THEN Acknowledged(i) ELSE {}]]
  /\ UNCHANGED <<applied, pool, attempts, accepted, fast, done, floor>>

FastVote(v, c, grants) ==
  /\ Vote(v, c, grants)
  /\ held' = [held EXCEPT ![c][v] = IF grants THEN Acknowledged(v) ELSE @]
  /\ UNCHANGED <<applied, pool, attempts, accepted, fast, done, floor>>

\* A new leader takes over what a recovery quorum of those that voted hold under the configuration that its log ends with,
\* unless its log decides it: ascending by revision, before its no-op.
Holding(i, p, r) == {v \in votes[i] : \E a \in held[i][v] : a.prop = p /\ a.rev = r /\ a.id = ConfigId(log[i])}
Recovered(i) ==
  LET V == VotersOf(log[i]) IN
  {x \in {<<a.prop, a.rev>> : a \in attempts} :
    /\ Cardinality(Holding(i, x[1], x[2]) \cap V) >= Recovery(V)
    /\ ~\E n \in 1..Len(log[i]) : log[i][n].prop = x[1] /\ (log[i][n].kind = "slow" \/ log[i][n].rev = x[2])}
RECURSIVE Ascending(_, _)
Ascending(S, t) ==
  IF S = {} THEN <<>>
  ELSE LET x == CHOOSE y \in S : \A z \in S : y[2] <= z[2] IN
       <<Entry("exact", x[1], x[2], t, None)>> \o Ascending(S \ {x}, t)

FastWin(i) ==
  /\ Win(i, Ascending(Recovered(i), term[i]))
  /\ held' = [held EXCEPT ![i] = [v \in Server |-> {}]]
  /\ UNCHANGED <<applied, pool, attempts, accepted, fast, done, floor>>

\* What truncation drops and the member answered as a leader moves back into its pool.
FastReceive(s, t, n, withCommit) ==
  /\ Receive(s, t, n, withCommit)
  /\ LET same == Shared(log[s], history[t])
         dropped == IF n > same THEN {log[s][k] : k \in (Max(same, applied[s]) + 1)..Len(log[s])} ELSE {} IN
     pool' = [pool EXCEPT ![s] = @ \cup UNION {Answered(s, e) : e \in {x \in dropped : x.kind = "exact" /\ x.by = s}}]
  /\ UNCHANGED <<applied, held, attempts, accepted, fast, done, floor>>

FastRestart(s, n) ==
  /\ n <= applied[s] /\ Restart(s, n)
  /\ applied' = [applied EXCEPT ![s] = n]
  /\ UNCHANGED <<pool, held, attempts, accepted, fast, done, floor>>

FastInit ==
  /\ applied = [s \in Server |-> 1]
  /\ pool = [s \in Server |-> {}]
  /\ held = [c \in Server |-> [v \in Server |-> {}]]
  /\ attempts = {} /\ accepted = {} /\ fast = {}
  /\ done = [p \in Proposal |-> 0]
  /\ floor = [p \in Proposal |-> 0]

Raft ==
  \/ \E i \in Server : FastCampaign(i) \/ FastWin(i)
  \/ \E v, c \in Server, grants \in BOOLEAN : FastVote(v, c, grants)
  \/ \E s \in Server, t \in Terms, n \in 1..MaxLog, c \in BOOLEAN : FastReceive(s, t, n, c)
  \/ \E s \in Server, n \in 1..MaxLog : (Commit(s, n) \/ Infer(s, n)) /\ UNCHANGED fastVars
  \/ \E a, b \in Server : Hint(a, b) /\ UNCHANGED fastVars
  \/ \E s \in Server, n \in 1..MaxLog : Apply(s, n)

Fast ==
  \/ \E p \in Proposal, r \in Revisions, s \in Server : Send(p, r, s)
  \/ \E s \in Server, a \in attempts : Record(s, a) \/ Propose(s, a)
  \/ \E a \in attempts : Decide(a)
  \/ \E s \in Server, p \in Proposal : Answer(s, p)

FastNext == Raft \/ Fast
FastSpec == RaftInit(First) /\ FastInit /\ [][FastNext]_vars

--------------------------------------------------------------------------------
(* Laws. *)

InOffice(i) == Open(i) /\ IsQuorum(VotersOf(log[i]), {s \in Server : term[s] = term[i]})

\* L1: what was reported is applied once, at that revision; and every leader that may serve a read has it.
L1 ==
  \A p \in Proposal : done[p] # 0 =>
    /\ LET st == StoreAt(committed, Len(committed)) IN st.row[p] = done[p] \/ (st.row[p] = 0 /\ st.rev < done[p])
    /\ \A i \in Server : InOffice(i) => StoreAt(log[i], Len(log[i])).row[p] = done[p]

\* L2: no revision is used twice.
L2 == LET row == StoreAt(committed, Len(committed)).row IN
  \A p, q \in Proposal : p # q /\ row[p] # 0 => row[p] # row[q]

\* L3: what completed before another was invoked has the smaller revision.
L3 == \A p \in Proposal : done[p] # 0 => done[p] > floor[p]
=============================================================================
