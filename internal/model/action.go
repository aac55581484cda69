package model

import "github.com/quorate/quorate/internal/consensus/rules"

// Kind names an atomic step of the protocol. The comment beside each constant says how it uses the fields A, B, C, D and M of
// an Action.
type Kind uint8

const (
	Campaign    Kind = iota // A begins an election
	Vote                    // A answers candidate B's request
	Win                     // A wins with the votes in M; C=1 reverses ties of recovered records
	PreVote                 // B learns the commit index of A, which asks for pre-votes
	Receive                 // B receives the log of term A's leader up to index C; D=1: also its commit index
	Commit                  // leader A commits up to index C
	Infer                   // A infers that index C has committed
	Apply                   // A applies up to index C
	Snapshot                // B installs a snapshot of leader A up to index C
	Crash                   // A crashes and restarts with its store at C and its commit index at D
	Send                    // slot A: proposal B is sent with revision C (0: slow only), as D sees it; M=1: its other payload
	Record                  // A receives the record of slot B
	Propose                 // leader A receives the proposal of slot B
	Evaluate                // leader A evaluates slot B late
	Decide                  // the proposer counts the answers to slot A
	Answer                  // A, which has applied proposal B, answers its proposer
	AnswerAbort             // A, which has applied an abort of proposal B, answers its proposer
	Orphan                  // A reports the record of slot B to leader C, which aborts it
	Change                  // leader A appends configuration B
	Transfer                // leader A begins to hand leadership to B, or gives up (-1)
	TimeoutNow              // leader A tells its transferee to campaign
	Tick                    // the clock advances
	Round                   // leader A begins a round of heartbeats
	Echo                    // A answers the round of leader B
	Ask                     // a read begins at A
	Take                    // the leader takes the read index for the reader
	Hand                    // the leader sends the confirmed index to the reader
	Word                    // the leader's unconfirmed index reaches the reader
	Tell                    // A answers the reader's own question
	Confirm                 // the reader confirms by itself: B=1 the leader's index, B=2 by a majority without the leader
	Serve                   // the reader serves the read
	Survive                 // A goes on alone; the directories of M are compared, all others are lost for ever
	Lose                    // A comes back with another disk: D=0 an empty one, D=1 an old copy that ends at index C
	actionKinds
)

// Action is a step with its parameters; unused ones are zero.
type Action struct {
	Kind       Kind
	A, B, C, D int8
	M          uint8
}

// steps are the transitions. Each one reports whether the action was possible, and a law that it broke. An action that is not
// possible leaves the state unchanged.
var steps = [actionKinds]stepOf[*Model]{
	Campaign: (*Model).campaign, Vote: (*Model).vote, Win: (*Model).win, PreVote: (*Model).preVote,
	Receive: (*Model).receive, Commit: (*Model).commit, Infer: (*Model).infer, Apply: (*Model).applyUpTo,
	Snapshot: (*Model).snapshot, Crash: (*Model).crash, Send: (*Model).send, Record: (*Model).record,
	Propose: (*Model).propose, Evaluate: (*Model).evaluateLate, Decide: (*Model).decide, Answer: (*Model).answer,
	AnswerAbort: (*Model).answerAbort, Orphan: (*Model).orphan, Change: (*Model).change, Transfer: (*Model).transfer,
	TimeoutNow: (*Model).timeoutNow, Tick: ofLeases((*leases).tick), Round: ofLeases((*leases).round),
	Echo: ofReads((*reads).echo), Ask: ofReads((*reads).ask),
	Take: ofReads((*reads).take), Hand: ofReads((*reads).hand), Word: ofReads((*reads).word),
	Tell: ofReads((*reads).tell), Confirm: ofReads((*reads).confirm),
	Serve: ofReads((*reads).serve), Survive: (*Model).survive, Lose: (*Model).lose,
}

type stepOf[T any] func(T, *State, Action) (bool, string)

func ofLeases(f stepOf[*leases]) stepOf[*Model] {
	return func(m *Model, s *State, a Action) (bool, string) { return f(m.leases, s, a) }
}

func ofReads(f stepOf[*reads]) stepOf[*Model] {
	return func(m *Model, s *State, a Action) (bool, string) { return f(m.reads, s, a) }
}

// Model is a scenario under a set of rules. Its parts are elections, the log, the fast path, reads, and changes of the members.
type Model struct {
	Scenario *Scenario
	Rules    rules.Set // the rules that are dropped
	machine
	electorate
	leases *leases
	reads  *reads
	laws   *laws
}

// New returns the model of a scenario.
func New(sc *Scenario, r rules.Set) *Model {
	m := &Model{Scenario: sc, Rules: r, machine: machine{r, &sc.Footprint, &sc.Lies}, electorate: electorate{r, sc.Configs}}
	m.leases = &leases{m.electorate, &sc.Patience, sc.Members}
	m.laws = &laws{m.machine, m.electorate, sc.Members}
	m.reads = &reads{m.electorate, m.leases, m.laws}
	return m
}

// Begin sets s to the state of a cluster whose leader A of term 1 has committed and applied its no-op on all members.
func (m *Model) Begin(s *State) {
	*s = State{}
	for t := range s.LeaderOf {
		s.LeaderOf[t] = -1
	}
	s.LeaderOf[1] = 0
	noop := plainEntry(noopEntry, 0, 1)
	s.TermLog[1].add(noop)
	s.TermCommit[1] = 1
	s.Committed.add(noop)
	c := m.Scenario.Configs[0]
	for i := range int8(m.Scenario.Members) {
		x := &s.M[i]
		x.Voted, x.Heir = -1, -1
		if !Has(c.voters()|c.Learners, i) {
			continue
		}
		x.Term, x.Commit, x.Applied = 1, 1, 1
		x.Log.add(noop)
		s.Acked[1][i] = 1
	}
	s.M[0].Voted, s.M[0].Role = 0, Leader
}

// Step performs an action in place. It reports whether the action was possible, and the law that it broke, or an empty string.
func (m *Model) Step(s *State, a Action) (bool, string) {
	if s.Dead != 0 && m.actors(s, a)&s.Dead != 0 {
		return false, ""
	}
	ok, bad := steps[a.Kind](m, s, a)
	if !ok || bad != "" {
		return ok, bad
	}
	return true, m.laws.check(s, a)
}

// actors returns the members that must be alive for an action.
func (m *Model) actors(s *State, a Action) uint8 {
	switch a.Kind {
	case Vote, PreVote, Snapshot, Echo:
		return Bit(a.A) | Bit(a.B)
	case Receive:
		return Bit(a.B)
	case Orphan:
		return Bit(a.A) | Bit(a.C)
	case Send:
		return Bit(a.D)
	case Decide, Tick, Hand:
		return 0
	case Take:
		return Bit(s.R.Leader)
	case Word, Confirm, Serve:
		return Bit(s.R.Reader)
	}
	return Bit(a.A)
}
