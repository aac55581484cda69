------------------------------ MODULE Reconfig ------------------------------
(* Membership changes by one voter (thesis, section 4.1): a configuration is in force as soon as it is in the log (ADR 0003).
   Two rules keep it safe: the leader has committed an entry of its own term, and no other change is under way. Each has a
   switch. Module Joint has the protocols that change several voters at once. *)
EXTENDS FastPath

CONSTANTS Targets,      \* sets of voters that may be configured
          ChangeEarly,  \* TRUE: before the own no-op commits (the bug of 2015)
          ChangeTwice   \* TRUE: while another change is not committed

Neighbours(V, W) == Cardinality((V \ W) \cup (W \ V)) = 1

Change(i, W) ==
  /\ role[i] = "leader" /\ W # VotersOf(log[i]) /\ Neighbours(VotersOf(log[i]), W)
  /\ Open(i) \/ ChangeEarly
  /\ ConfigAt(log[i]) <= commit[i] \/ ChangeTwice
  /\ LogAppend(i, Entry("config", W, 0, term[i], None))
  /\ UNCHANGED fastVars

ReconfigNext == FastNext \/ \E i \in Server, W \in Targets : Change(i, W)
=============================================================================
