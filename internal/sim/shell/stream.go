package shell

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/sim/dice"
)

const (
	// sessionWrites is how many writes a native client may do in a session: few, so that clients change their sessions.
	sessionWrites = 24
	// refused is the share of writes that a member refuses before it proposes them, as for a lack of space.
	refused = 1.0 / 100
	// refusedHere is the refusal of a record that does not reach the core.
	refusedHere = 255
)

// Stream is the member's end of the stream of a native client. It does what rpc/writerapi does in goroutines.
type Stream struct {
	*Clients
	owner   clients.Owner
	caller  Caller
	leave   func() // ends the stream
	send    func(r *quoratepb.ProposeResponse)
	told    *quoratepb.MemberStatus // the last status
	opening bool
	core    *listener // for what the core says to the client; nil before its first offer
	closed  bool
	order   []*Answer // those of waiting, and some that do not wait any more
	waiting map[*Answer]consensus.ProposalID
	offered map[consensus.ProposalID]bool // those of waiting that the client offered to this member as the leader
}

// Caller is in whose name a client uses a stream. All but InTurn may wait, and is called inside of InTurn.
type Caller interface {
	InTurn(f func()) // does something after what came before on the stream
	Permit() error
	Unsettled() bool
	Sign(command *kv.Command) error
}

// Anybody is the Caller of a world without users.
type Anybody struct{}

// InTurn implements Caller.
func (Anybody) InTurn(f func()) { f() }

// Permit implements Caller.
func (Anybody) Permit() error { return nil }

// Unsettled implements Caller.
func (Anybody) Unsettled() bool { return false }

// Sign implements Caller.
func (Anybody) Sign(*kv.Command) error { return nil }

// NewStream begins the stream of a client. send carries responses to it, in order; leave ends the stream.
func (c *Clients) NewStream(
	owner clients.Owner, caller Caller, send func(r *quoratepb.ProposeResponse), leave func(),
) *Stream {
	return &Stream{
		Clients: c, owner: owner, caller: caller, send: send, leave: leave,
		waiting: map[*Answer]consensus.ProposalID{}, offered: map[consensus.ProposalID]bool{},
	}
}

// Close ends the stream: nobody waits for its answers any more.
func (s *Stream) Close() {
	s.closed = true
	s.ignore(s.owner.ID, s.core)
	if !s.Runs() {
		return
	}
	for _, told := range s.order {
		if id, waits := s.waiting[told]; waits {
			s.node.AbandonFor(id, told)
		}
	}
}

// Look tells the client how the cluster is, if that has changed.
func (s *Stream) Look() {
	if now := s.status(); s.told == nil || s.told.Leader != now.Leader || s.told.Fast != now.Fast ||
		s.told.TermConfig.String() != now.TermConfig.String() {
		s.told = now
		s.send(&quoratepb.ProposeResponse{Status: now})
	}
}

func (s *Stream) status() *quoratepb.MemberStatus {
	core := s.node.Replica()
	inForce := core.InForce()
	status := &quoratepb.MemberStatus{
		Cluster: uint64(s.data.Identity.Cluster), Member: uint64(s.ID), Leader: uint64(core.Leader()),
		Term:       uint64(core.Term()),
		TermConfig: termConfig(core.Term(), inForce.ID), Fast: s.fast && core.Stable(),
		SessionLength: sessionWrites, MaxMessageBytes: 1 << 20, Clock: uint64(s.Clock().UnixNano()),
	}
	for _, id := range inForce.Config.Voters {
		status.Voters = append(status.Voters, uint64(id))
	}
	return status
}

func termConfig(term consensus.Term, config consensus.ConfigID) *quoratepb.TermConfig {
	return &quoratepb.TermConfig{
		Term: uint64(term), ConfigIndex: uint64(config.Index), ConfigTerm: uint64(config.Term),
		ConfigStage: uint32(config.Stage),
	}
}

// Take does what the client asks, when it has done what it asked for before.
func (s *Stream) Take(r *quoratepb.ProposeRequest) { s.caller.InTurn(func() { s.take(r) }) }

func (s *Stream) take(r *quoratepb.ProposeRequest) {
	if s.closed {
		return
	}
	if s.caller.Permit() != nil {
		s.leave()
		return
	}
	switch {
	case s.closed:
		return
	case r.Open != nil && !s.opening:
		s.opening = true
		s.open(r.Open)
	}
	for _, number := range r.Retire {
		s.retire(s.owner.Session(number))
	}
	if r.TermConfig != nil {
		s.takeOffer(r)
		return
	}
	for _, p := range r.Proposals {
		if command, told := s.begin(p); told != nil {
			s.judge(told, s.node.ProposeFor(s.waiting[told], command, told))
		}
	}
	s.wake()
	if r.Ping != 0 {
		s.told = s.status()
		s.told.Ping = r.Ping
		s.send(&quoratepb.ProposeResponse{Status: s.told})
	}
}

// open opens a session, under another number if one with this number or a later one has ended meanwhile.
func (s *Stream) open(r *quoratepb.OpenSession) {
	session := s.data.Machine.NextClientSession(s.owner.ID, r.Above)
	command := &kv.Command{
		SessionOpen: &kv.SessionOpenOp{Member: uint64(s.owner.ID), Number: session.Number, Keep: r.Keep},
	}
	done := func(number uint64, code codes.Code) {
		s.opening = false
		s.send(&quoratepb.ProposeResponse{Opened: &quoratepb.SessionOpened{Session: number, Code: uint32(code)}})
	}
	told := &Answer{Tell: func(result kv.Result, err error) {
		s.After(0, func() {
			switch {
			case s.closed:
			case err != nil:
				done(0, codes.Unavailable)
			case errors.Is(result.Err, kv.ErrSessionUnknown):
				s.open(r)
			default:
				done(session.Number, codes.OK)
			}
		})
	}}
	if s.node.ProposeFor(consensus.ProposalID{Session: session}, command, told) != nil {
		s.After(0, func() { done(0, codes.Unavailable) })
	}
	s.wake()
}

func (s *Stream) retire(session consensus.SessionID) {
	if s.data.Machine.SessionOpen(session) {
		command := &kv.Command{SessionRetire: &kv.SessionRetireOp{Member: uint64(session.Member), Number: session.Number}}
		_, _ = s.node.Propose(command, Completion(func(kv.Result, error) {}))
	}
}

// begin takes one proposal. No Answer means that it is answered already.
func (s *Stream) begin(p *quoratepb.Proposal) (*kv.Command, *Answer) {
	id := s.owner.Proposal(p.Session, p.Sequence)
	command, err := s.admit(p)
	if p.Again && !errors.Is(err, errDenied) {
		if r, found, err := s.data.Machine.Result(id); found && err == nil {
			s.answer(id, &command, r, nil)
			return nil, nil
		}
	}
	if err != nil || dice.Chance(s.Rng, refused) {
		code := codes.ResourceExhausted
		if errors.Is(err, errDenied) {
			code = codes.PermissionDenied
		}
		s.send(&quoratepb.ProposeResponse{Answers: []*quoratepb.Answer{{
			Session: p.Session, Sequence: p.Sequence, Verdict: quoratepb.Answer_VERDICT_REFUSED, Code: uint32(code),
		}}})
		return nil, nil
	}
	told := &Answer{}
	told.Tell = func(r kv.Result, err error) {
		s.After(0, func() {
			if _, waits := s.waiting[told]; waits && !s.closed {
				delete(s.waiting, told)
				delete(s.offered, id)
				s.answer(id, &command, r, err)
			}
		})
	}
	s.waiting[told] = id
	s.order = append(s.order, told)
	return &command, told
}

var errDenied = errors.New("sim: permission denied")

// admit reads a request, and puts into it in whose name it comes.
func (s *Stream) admit(p *quoratepb.Proposal) (kv.Command, error) {
	command, err := kv.DecodeCommand(p.Request)
	if err == nil && s.caller.Sign(&command) != nil {
		err = errDenied
	}
	return command, err
}

// judge ends a proposal that could not be proposed.
func (s *Stream) judge(told *Answer, err error) {
	if err != nil {
		told.Tell(kv.Result{}, err)
	}
}

// answer says what came of a proposal.
func (s *Stream) answer(id consensus.ProposalID, command *kv.Command, r kv.Result, err error) {
	r, err = s.Whole(command, r, err)
	a := &quoratepb.Answer{Session: id.Session.Number, Sequence: id.Sequence}
	switch {
	case errors.Is(err, proposals.ErrSessionLost):
		a.Verdict = quoratepb.Answer_VERDICT_LOST
	case err != nil:
		a.Verdict = quoratepb.Answer_VERDICT_AGAIN
	case errors.Is(r.Err, kv.ErrSessionUnknown):
		a.Verdict = quoratepb.Answer_VERDICT_GONE
	case errors.Is(r.Err, kv.ErrAborted):
		a.Verdict = quoratepb.Answer_VERDICT_ABORTED
	default:
		a.Verdict, a.Response = quoratepb.Answer_VERDICT_APPLIED, r.Append(nil)
	}
	s.send(&quoratepb.ProposeResponse{Answers: []*quoratepb.Answer{a}})
}

// takeOffer takes what the client offers to all voters at once.
func (s *Stream) takeOffer(r *quoratepb.ProposeRequest) {
	if s.core == nil {
		s.core = &listener{s.hear}
		s.listen(s.owner.ID, s.core)
	}
	message := consensus.Message{
		Kind: consensus.MsgRecord, From: s.owner.ID, To: s.ID, Due: r.Due, Term: consensus.Term(r.TermConfig.Term),
		Config: consensus.ConfigID{
			Index: consensus.Index(r.TermConfig.ConfigIndex), Term: consensus.Term(r.TermConfig.ConfigTerm),
			Stage: uint8(r.TermConfig.ConfigStage),
		},
	}
	offer := func(p *quoratepb.Proposal, command *kv.Command) {
		message.Proposals = append(message.Proposals, consensus.Proposal{
			ID: s.owner.Proposal(p.Session, p.Sequence), Kind: consensus.EntryCommand, Payload: command.Append(nil),
		})
	}
	var not []*quoratepb.Verdict
	unsettled := s.caller.Unsettled()
	for _, p := range r.Records {
		command, err := s.admit(p)
		if dice.Chance(s.Rng, refused) || unsettled || err != nil {
			not = append(not, &quoratepb.Verdict{Session: p.Session, Sequence: p.Sequence, Refusal: refusedHere})
		} else {
			offer(p, &command)
		}
	}
	if len(not) > 0 {
		s.send(&quoratepb.ProposeResponse{Verdicts: []*quoratepb.Verdicts{{TermConfig: r.TermConfig, Verdicts: not}}})
	}
	for _, p := range r.Proposals {
		message.Kind = consensus.MsgFastPropose
		command, told := s.begin(p)
		switch {
		case told == nil:
		case s.node.Replica().Leader() != s.ID:
			s.judge(told, s.node.ProposeFor(s.waiting[told], command, told))
		default:
			s.offered[s.waiting[told]] = true
			if err := s.node.ExpectFor(s.waiting[told], command, told); err != nil {
				s.judge(told, err)
			} else {
				offer(p, command)
			}
		}
	}
	if len(message.Proposals) > 0 {
		s.put(raft.Receive{Message: message})
	}
	s.wake()
}

// hear passes on what the core says about what the client offered.
func (s *Stream) hear(m *consensus.Message) {
	all := &quoratepb.Verdicts{TermConfig: termConfig(m.Term, m.Config), Leader: m.Kind == consensus.MsgFast}
	for i := range m.Verdicts {
		v := &m.Verdicts[i]
		answer := &quoratepb.Verdict{
			Session: v.Proposal.Session.Number, Sequence: v.Proposal.Sequence, Revision: v.Revision, Refusal: uint32(v.Refusal),
		}
		if v.Refusal == consensus.RefusedNot {
			answer.Digest = v.Digest[:]
		}
		if all.Leader && v.Refusal == consensus.RefusedNot {
			if r, err := kv.DecodeResult(v.Reply); err != nil || !s.offered[v.Proposal] || r.Err != nil {
				continue // it has its answer
			}
			answer.Response = v.Reply
		}
		all.Verdicts = append(all.Verdicts, answer)
	}
	if len(all.Verdicts) > 0 {
		s.send(&quoratepb.ProposeResponse{Verdicts: []*quoratepb.Verdicts{all}})
	}
}
