package streams

import (
	"cmp"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/clients"
)

const (
	// maxKeptSessions is how many sessions a client has besides the one that it opens: that which it uses, and the one
	// before it.
	maxKeptSessions = 2
	// maxRetired is how many sessions one message may retire: more than a client has.
	maxRetired = maxKeptSessions + 2
)

var (
	errNoClient = status.Error(codes.InvalidArgument,
		"quorate: the first message of a stream must bear its client's key, of 32 bytes")
	errRetiring = status.Error(codes.InvalidArgument,
		"quorate: a client has at most three sessions, and retires no more than four in one message")
	errUnread = status.Error(codes.ResourceExhausted,
		"quorate: the client does not read its answers; it may ask for them again on another stream")
	errOpening = status.Error(codes.InvalidArgument,
		"quorate: a client opens one session at a time, and keeps at most two others")
	errProposal = status.Error(codes.InvalidArgument,
		"quorate: the proposal has no session, sequence or kind that a client's proposal may have")
	// ErrDenied is wrapped by what Requests.Admit returns if the client may not do what it asks for.
	ErrDenied = errors.New("rpc: permission denied")
	// ErrNoRoom is wrapped by what Requests.Admit returns if nothing may grow here, whether it was sent before or not.
	ErrNoRoom = errors.New("rpc: no room")

	errNoMemory = status.Error(codes.ResourceExhausted,
		"quorate: this member has no memory left for what clients of this address hold: ask another one, or try again later")
	// errNotHeld answers what was applied, and whose result this member has no memory for until the client reads.
	errNotHeld = status.Error(codes.ResourceExhausted,
		"quorate: this member has no memory for the result until the client reads; it may ask for it again")

	errClientID = status.Error(codes.AlreadyExists, clients.ErrClientID.Error())
)

// Stream is the stream of one client. Answers come from the goroutine that applies.
type Stream struct {
	all    *Streams
	owner  clients.Owner
	driver Driver
	leave  func() // the table of clients

	work                         // of the goroutine that takes messages
	told    clients.ClusterState // in the last status; of the goroutine that calls Next
	greeted bool                 // there was one; likewise
	readsOn bool                 // answers that have to be read go next; likewise

	mu         sync.Mutex
	detach     func()         // from what the core says to the client; nil before its first offer
	tab        *admission.Tab // of what this stream holds: requests, results and verdicts until they are sent
	sending    int64          // of tab, for what is being sent
	accounts   []kv.Account   // of the answers that are being sent
	closed     bool           // nothing is sent any more
	over       error          // why nothing more is taken
	waits      bool           // Go has returned Room
	unanswered map[*proposal]struct{}
	grown      int // the most proposals in unanswered since it was made
	bytes      int // of requests in unanswered
	finished   []finished
	unread     int // bytes of finished, heard and taken
	taken      taken
	opening    bool
	opened     *quoratepb.SessionOpened
	asked      bool // an empty request wants to hear something
	ping       uint64
	heard      heard
	offered    map[consensus.ProposalID]*proposal // those of unanswered that were offered to the leader's core
}

// proposal is one proposal of a stream until it is answered; it is its own Completion.
type proposal struct {
	stream *Stream
	id     consensus.ProposalID
	kind   quoratepb.Proposal_Kind
	bytes  int
	parts  int64 // of the stream's tab, for the command's parts
	// entered is set once it counts as unanswered; of the goroutine that takes messages.
	entered bool
	passed  bool // it was admitted; likewise
	// command is set while a result that is not complete may come of it.
	command *kv.Command
	// leave lets the next command that costs much be proposed; nil if this one costs little, or was not admitted.
	leave func()
}

// finished is a proposal with what came of it. refused is why it was not proposed at all.
type finished struct {
	id      consensus.ProposalID
	kind    quoratepb.Proposal_Kind
	command *kv.Command
	result  kv.Result
	err     error
	refused error
	held    int64 // of the stream's tab
}

// work is the message that is taken.
type work struct {
	request *quoratepb.ProposeRequest
	stage   stage
	at      int                // in its proposals: the next one
	one     *proposal          // that one, if it waits for room or its turn
	command *kv.Command        // that waits for its turn
	parts   int64              // of the stream's tab, for a message of many parts
	ready   []clients.Proposed // checked, and to be proposed
	offer   consensus.Message  // checked, and to be offered
	urgent  bool               // a command in offer has a turn for which others wait
	waited  bool               // Go has returned Room
	listens bool               // to what the core says to the client
}

type stage uint8

const (
	arrived stage = iota
	recording
	recorded
	proposing
	finishing
)

// taken is what Next has taken to send, and has not returned yet: its answers may be read for seconds.
type taken struct{ answers, unread int }

// heard is what the member's core says to the client, and how many verdicts of it are not sent yet.
type heard struct {
	messages []consensus.Message
	verdicts int
	held     int64 // of the stream's tab
}

// newStream returns the stream of a client, which Close must end.
func (all *Streams) newStream(owner clients.Owner, host string, driver Driver) *Stream {
	return &Stream{
		all: all, owner: owner, driver: driver, leave: func() {}, tab: all.options.Held.Open(host),
		unanswered: map[*proposal]struct{}{}, offered: map[consensus.ProposalID]*proposal{},
	}
}

// Owner is the client.
func (s *Stream) Owner() clients.Owner { return s.owner }

// Take begins with a message, after Go has returned Done for the one before. A message of many parts is counted until it is
// done with: the parts take more memory than their bytes on the wire. Where there is no room for it, the stream ends.
func (s *Stream) Take(request *quoratepb.ProposeRequest) {
	s.request, s.stage, s.at = request, arrived, 0
	if parts := int64(len(request.Proposals) + len(request.Records)); parts > fewParts {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.closed: // so is the tab
			return
		case !s.tab.Take(parts * partBytes):
			s.over = cmp.Or(s.over, errNoMemory)
			return
		}
		s.parts = parts * partBytes
	}
}

// answer answers a proposal that has entered, once.
func (s *Stream) answer(one *proposal, f finished) {
	s.mu.Lock()
	_, waits := s.unanswered[one]
	if waits {
		delete(s.unanswered, one)
		if s.offered[one.id] == one {
			delete(s.offered, one.id)
		}
		s.bytes -= one.bytes
		s.hold(one, &f)
		s.finished = append(s.finished, f)
		s.wait(resultBytes(&f.result))
		s.shrink()
	} else {
		f.drop()
	}
	s.mu.Unlock()
	if waits {
		s.all.options.Pending.Add(-1)
		s.driver.Ready()
	}
}

// shrink gives back the room of many proposals once none waits: maps do not become smaller. The lock is held.
func (s *Stream) shrink() {
	if len(s.unanswered) == 0 && s.grown > keptProposals {
		s.grown = 0
		s.unanswered, s.offered = map[*proposal]struct{}{}, map[consensus.ProposalID]*proposal{}
	}
}

func (one *proposal) refuse(why error) {
	one.ended()
	one.stream.answer(one, finished{id: one.id, kind: one.kind, refused: why})
}

// ended is called once: when the command was refused, or is complete.
func (one *proposal) ended() {
	if one.leave != nil && !one.stream.all.options.Faults.KeepsTurns {
		one.leave()
	}
}

// Complete implements proposals.Completion.
func (one *proposal) Complete(result kv.Result, err error) {
	one.ended()
	one.stream.answer(one, finished{id: one.id, kind: one.kind, command: one.command, result: result, err: err})
}

// held is what a proposal has of its stream's tab until it is answered.
func (one *proposal) held() int64 { return proposalBytes + int64(one.bytes) + one.parts }

// hold counts what is kept of an answered proposal until its answer is sent: the result, as often as it is there once it is
// encoded, and the request only if the result has to be read by it. Where there is no room, the result goes: the client may
// ask for it again. The lock is held.
func (s *Stream) hold(one *proposal, f *finished) {
	const copies = 2
	if f.result.Left == nil {
		f.command = nil
	}
	had := one.held()
	f.held = proposalBytes + copies*int64(resultBytes(&f.result))
	if f.command != nil {
		f.held += int64(one.bytes + commandBytes(f.command))
	}
	if f.held > had && !s.tab.Take(f.held-had) {
		f.drop()
		f.held, f.command, f.result, f.err = proposalBytes, nil, kv.Result{}, cmp.Or(f.err, errNotHeld)
	}
	if f.held < had {
		s.tab.Give(had - f.held)
	}
}

// wait counts what waits for the client to read. If that is too much, all of it is dropped and the stream ends: the results
// stay with the sessions, and the client may ask for them again. The lock is held.
func (s *Stream) wait(bytes int) {
	if s.unread += bytes; s.unread <= s.all.options.Bounds.UnreadBytes {
		return
	}
	s.dropFinished()
	s.tab.Give(s.heard.held)
	s.heard = heard{}
	if s.over == nil || errors.Is(s.over, io.EOF) { // a client that sends no more does not read either
		s.over = errUnread
		s.all.unread.Add(1)
		s.room()
	}
}

// dropFinished drops the answers that are not sent. The lock is held.
func (s *Stream) dropFinished() {
	for i := range s.finished {
		s.finished[i].drop()
		s.tab.Give(s.finished[i].held)
	}
	s.finished = nil
}

// sentAll gives back the memory of the response that was sent. The lock is held.
func (s *Stream) sentAll() {
	s.tab.Give(s.sending)
	s.sending = 0
	for _, account := range s.accounts {
		account.Release()
	}
	s.accounts = nil
}

// drop gives back the memory of a result.
func (f *finished) drop() {
	if f.result.Memory != nil {
		f.result.Memory.Release()
	}
}

// Opened says what came of a session that the driver was to open.
func (s *Stream) Opened(session consensus.SessionID, err error) {
	opened := &quoratepb.SessionOpened{Session: session.Number}
	if err != nil {
		if errors.Is(err, clients.ErrClientID) {
			err = errClientID
		}
		why := status.Convert(s.all.options.Requests.Wire(err))
		opened = &quoratepb.SessionOpened{Code: uint32(why.Code()), Message: why.Message()}
	}
	s.mu.Lock()
	s.opening, s.opened = false, opened
	s.mu.Unlock()
	s.driver.Ready()
}

// Remind lets Next say how the cluster is, without a ping of the client.
func (s *Stream) Remind() {
	s.mu.Lock()
	if !s.asked {
		s.asked, s.ping = true, 0
	}
	s.mu.Unlock()
	s.driver.Ready()
}

// End says that no further message comes, and why: after io.EOF the client wants its answers.
func (s *Stream) End(why error) {
	s.mu.Lock()
	s.over = cmp.Or(s.over, why)
	s.mu.Unlock()
	s.driver.Ready()
}

// ended reports whether nothing follows what Next has taken, and why. The lock is held.
func (s *Stream) ended() (bool, error) {
	if errors.Is(s.over, io.EOF) {
		return len(s.unanswered) == 0 && !s.opening, nil
	}
	return s.over != nil, s.over
}

// room lets Go look again whether there is room. The lock is held.
func (s *Stream) room() {
	if s.waits {
		s.waits = false
		s.driver.Room()
	}
}

// Close gives up what is unanswered: the client asks again elsewhere.
func (s *Stream) Close() {
	s.mu.Lock()
	s.closed = true
	s.sentAll()
	s.dropFinished()
	s.tab.Close()
	left, detach := s.unanswered, s.detach
	s.unanswered, s.detach = nil, nil
	s.room()
	s.mu.Unlock()
	if detach != nil {
		detach()
	}
	for one := range left {
		s.abandon(one)
		s.all.options.Pending.Add(-1)
	}
	s.leave()
}

// abandon gives up a proposal of a stream that has ended. One that has a turn says when it was applied.
func (s *Stream) abandon(one *proposal) {
	if one.leave == nil {
		s.all.options.Clients.Abandon(one.id, one)
	}
}

// closedMeanwhile reports whether the stream has ended. Close did not see what was proposed after it: its proposer abandons it.
func (s *Stream) closedMeanwhile() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func termConfig(term consensus.Term, config consensus.ConfigID) *quoratepb.TermConfig {
	return &quoratepb.TermConfig{
		Term: uint64(term), ConfigIndex: uint64(config.Index), ConfigTerm: uint64(config.Term),
		ConfigStage: uint32(config.Stage),
	}
}
