package model

// actionKind names an atomic step of the protocol. What A, B, C, D and M of an action mean is said beside each.
type actionKind uint8

const (
	campaign    actionKind = iota // A begins an election
	vote                          // A answers candidate B's request
	win                           // A wins with the votes in M; C=1 turns ties of recovered records round
	preVote                       // B learns the commit index of A, which asks for pre-votes
	receive                       // B receives the log of term A's leader up to index C, D=1: and its commit index
	commit                        // leader A commits up to index C
	infer                         // A infers that index C has committed
	apply                         // A applies up to index C
	snapshot                      // B installs a snapshot of leader A up to index C
	crash                         // A crashes and restarts with its store at C and its commit index at D
	send                          // slot A: proposal B is sent with revision C (0: slow only), as member D sees term and config
	record                        // A receives the record of slot B
	propose                       // leader A receives the proposal of slot B
	evaluate                      // leader A evaluates slot B late
	decide                        // the proposer adds up the answers to slot A
	answer                        // A, which has applied proposal B, answers its proposer
	answerAbort                   // A, which has applied an abort of proposal B, answers its proposer
	orphan                        // A reports the record of slot B to leader C, which aborts it
	change                        // leader A appends configuration B
	transfer                      // leader A begins to hand leadership to B, or gives up (-1)
	timeoutNow                    // leader A tells its heir to campaign
	tick                          // time passes
	round                         // leader A begins a round of heartbeats
	echo                          // A answers the round of leader B
	ask                           // a read begins at A
	take                          // the reader's leader takes the read index
	hand                          // the leader hands it out
	word                          // the leader's unconfirmed index reaches the reader
	tell                          // A answers the reader's own question
	confirm                       // the reader confirms by itself: B=1 the leader's index, B=2 by a majority without the leader
	serve                         // the reader serves the read
	survive                       // A goes on alone; the directories of M are compared, all others are lost for ever
	lose                          // A comes back with another disk: D=0 an empty one, D=1 a copy that is as old as index C
	actionKinds
)

// action is a step with its parameters; those that it does not use are zero.
type action struct {
	Kind       actionKind
	A, B, C, D int8
	M          uint8
}

// steps are the transitions. Each reports whether the action was possible, and a law that the step itself broke; what is
// not possible leaves the state as it was.
var steps = [actionKinds]stepOf[*Model]{
	campaign: (*Model).campaign, vote: (*Model).vote, win: (*Model).win, preVote: (*Model).preVote,
	receive: (*Model).receive, commit: (*Model).commit, infer: (*Model).infer, apply: (*Model).applyUpTo,
	snapshot: (*Model).snapshot, crash: (*Model).crash, send: (*Model).send, record: (*Model).record,
	propose: (*Model).propose, evaluate: (*Model).evaluateLate, decide: (*Model).decide, answer: (*Model).answer,
	answerAbort: (*Model).answerAbort, orphan: (*Model).orphan, change: (*Model).change, transfer: (*Model).transfer,
	timeoutNow: (*Model).timeoutNow, tick: ofLeases((*leases).tick), round: ofLeases((*leases).round),
	echo: ofReads((*reads).echo), ask: ofReads((*reads).ask),
	take: ofReads((*reads).take), hand: ofReads((*reads).hand), word: ofReads((*reads).word),
	tell: ofReads((*reads).tell), confirm: ofReads((*reads).confirm),
	serve: ofReads((*reads).serve), survive: (*Model).survive, lose: (*Model).lose,
}

type stepOf[T any] func(T, *state, action) (bool, string)

func ofLeases(f stepOf[*leases]) stepOf[*Model] {
	return func(m *Model, s *state, a action) (bool, string) { return f(m.leases, s, a) }
}

func ofReads(f stepOf[*reads]) stepOf[*Model] {
	return func(m *Model, s *state, a action) (bool, string) { return f(m.reads, s, a) }
}

// Model is a scenario under a set of rules. Its methods are elections, the log, the fast path, and changes of the members.
type Model struct {
	scenario *Scenario
	rules    Rules
	machine
	electorate
	leases *leases
	reads  *reads
	laws   *laws
}

// New returns the model of a scenario.
func New(sc *Scenario, r Rules) *Model {
	m := &Model{scenario: sc, rules: r, machine: machine{r, &sc.Footprint}, electorate: electorate{r, sc.Configs}}
	m.leases = &leases{m.electorate, &sc.Patience, sc.Members}
	m.laws = &laws{m.machine, m.electorate, sc.Members}
	m.reads = &reads{m.electorate, m.leases, m.laws}
	return m
}

// begin is a cluster whose leader A of term 1 has committed and applied its no-op everywhere.
func (m *Model) begin(s *state) {
	*s = state{}
	for t := range s.LeaderOf {
		s.LeaderOf[t] = -1
	}
	s.LeaderOf[1] = 0
	noop := plainEntry(noopEntry, 0, 1)
	s.TermLog[1].add(noop)
	s.TermCommit[1] = 1
	s.Committed.add(noop)
	c := m.scenario.Configs[0]
	for i := range int8(m.scenario.Members) {
		x := &s.M[i]
		x.Voted, x.Heir = -1, -1
		if !has(c.voters()|c.Learners, i) {
			continue
		}
		x.Term, x.Commit, x.Applied = 1, 1, 1
		x.Log.add(noop)
		s.Acked[1][i] = 1
	}
	s.M[0].Voted, s.M[0].Role = 0, leader
}

// step performs an action in place. It reports whether the action was possible, and a broken law, if any.
func (m *Model) step(s *state, a action) (bool, string) {
	if s.Dead != 0 && m.actors(s, a)&s.Dead != 0 {
		return false, ""
	}
	ok, bad := steps[a.Kind](m, s, a)
	if !ok || bad != "" {
		return ok, bad
	}
	return true, m.laws.check(s, a)
}

// actors are the members that must be alive for an action.
func (m *Model) actors(s *state, a action) uint8 {
	switch a.Kind {
	case vote, preVote, snapshot, echo:
		return bit(a.A) | bit(a.B)
	case receive:
		return bit(a.B)
	case orphan:
		return bit(a.A) | bit(a.C)
	case send:
		return bit(a.D)
	case decide, tick, hand:
		return 0
	case take:
		return bit(s.R.Leader)
	case word, confirm, serve:
		return bit(s.R.Reader)
	}
	return bit(a.A)
}
