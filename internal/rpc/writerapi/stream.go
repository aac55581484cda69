package writerapi

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/admission"
	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/etcderr"
)

// Bounds of what one stream may have waiting at the member, before no more is read from it.
const (
	maxStreamProposals = 4096
	maxStreamBytes     = 32 << 20
	// maxAnswerBytes ends a message of answers; one answer may be larger.
	maxAnswerBytes = 1 << 20
	// maxKeptSessions is how many sessions a client has besides the one that it opens: that which it uses, and the one
	// before it.
	maxKeptSessions = 2
	// maxRetired is how many sessions one message may retire: more than a client has.
	maxRetired = maxKeptSessions + 2
	// maxUnreadBytes is how much may wait for a client that does not read, before its stream ends.
	maxUnreadBytes = 64 << 20
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
	// ErrDenied is wrapped by what KV.Admit returns if the client may not do what it asks for.
	ErrDenied = errors.New("rpc: permission denied")
	// ErrNoRoom is wrapped by what KV.Admit returns if nothing may grow here, whether it was sent before or not.
	ErrNoRoom = errors.New("rpc: no room")

	errNoMemory = status.Error(codes.ResourceExhausted,
		"quorate: this member has no memory left for what clients of this address hold: ask another one, or try again later")
	// errNotHeld answers what was applied, and whose result this member has no memory for until the client reads.
	errNotHeld = status.Error(codes.ResourceExhausted,
		"quorate: this member has no memory for the result until the client reads; it may ask for it again")

	errClientID = status.Error(codes.AlreadyExists, clients.ErrClientID.Error())
)

// proposeStream is the stream of one client. The goroutine of the call sends, one more receives, and answers come from the
// goroutine that applies.
type proposeStream struct {
	writer *Service
	grpc   grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse]
	owner  clients.Owner
	wake   chan struct{}
	detach func()                // from what the core says to the client; nil before its first offer
	told   *clients.ClusterState // in the last status; of the goroutine that sends
	ready  []clients.Proposed    // checked, and to be proposed with the message; of the goroutine that receives

	mu         sync.Mutex
	room       sync.Cond
	tab        *admission.Tab // of what this stream holds: requests, results and verdicts until they are sent
	sending    int64          // of tab, for what is being sent
	closed     bool           // no goroutine sends any more
	received   error
	unanswered map[*streamProposal]struct{}
	bytes      int // of requests in unanswered
	finished   []finished
	unread     int // bytes of finished and heard
	opening    bool
	opened     *quoratepb.SessionOpened
	asked      bool // an empty request wants to hear something
	ping       uint64
	heard      heard
	offered    map[consensus.ProposalID]*streamProposal // those of unanswered that were offered to the leader's core
}

// streamProposal is one proposal of a stream until it is answered; it is its own Completion.
type streamProposal struct {
	stream *proposeStream
	id     consensus.ProposalID
	kind   quoratepb.Proposal_Kind
	bytes  int
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

// newStream returns the stream of a client, which close must end.
func (w *Service) newStream(
	grpc grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse], owner clients.Owner,
) *proposeStream {
	p := &proposeStream{
		writer: w, grpc: grpc, owner: owner, wake: make(chan struct{}, 1),
		tab:        w.options.Held.Open(admission.CallerOf(grpc.Context()).Host),
		unanswered: map[*streamProposal]struct{}{}, offered: map[consensus.ProposalID]*streamProposal{},
	}
	p.room.L = &p.mu
	return p
}

// receive does what the client asks. It ends with the stream: when the call returns, Recv fails.
func (p *proposeStream) receive(request *quoratepb.ProposeRequest) {
	for {
		err := p.take(request)
		if err == nil {
			request, err = p.grpc.Recv()
		}
		if err != nil {
			p.mu.Lock()
			if p.received == nil {
				p.received = err
			}
			p.mu.Unlock()
			p.signal()
			return
		}
	}
}

// take does what one message asks for.
func (p *proposeStream) take(request *quoratepb.ProposeRequest) error {
	if p.writer.options.Member.Learner() { // since the stream began
		return rpctypes.ErrGRPCNotSupportedForLearner
	}
	// A client with a token that is over, or without one, is sent away. It comes back with another, and gets its answers.
	if err := p.writer.options.KV.Permit(p.grpc.Context()); err != nil {
		return etcderr.Wire(err)
	}
	p.writer.options.Clients.KeepClient(p.owner.ID)
	if request.Open != nil {
		if err := p.open(request.Open); err != nil {
			return err
		}
	}
	if len(request.Retire) > maxRetired {
		return errRetiring
	}
	for _, number := range request.Retire {
		if session := p.owner.Session(number); session.OfClient() {
			p.writer.options.Clients.RetireClientSession(session)
		}
	}
	if request.TermConfig != nil {
		return p.fast(request)
	}
	if err := p.propose(request.Proposals); err != nil {
		return err
	}
	if request.Open == nil && len(request.Proposals) == 0 {
		p.mu.Lock()
		p.asked, p.ping = true, request.Ping
		p.mu.Unlock()
		p.signal()
	}
	return nil
}

// propose checks the proposals of a message and hands them to the member together, or answers them. The error ends the stream.
func (p *proposeStream) propose(all []*quoratepb.Proposal) error {
	for _, r := range all {
		command, one, err := p.begin(r, p.handOver)
		if err != nil {
			p.dropReady()
			return err
		}
		if command != nil {
			p.ready = append(p.ready, clients.Proposed{ID: one.id, Command: command, Done: one})
		}
	}
	p.handOver()
	return nil
}

// handOver proposes what was checked.
func (p *proposeStream) handOver() {
	if len(p.ready) == 0 {
		return
	}
	p.writer.options.Clients.ProposeAllFor(p.ready, func(at int, why error) {
		p.ready[at].Done.(*streamProposal).refuse(why)
	})
	clear(p.ready)
	p.ready = p.ready[:0]
}

// dropReady gives back the turns of commands that were checked and not proposed, of a stream that has ended: close leaves that
// to the goroutine that completes a command, and none completes these.
func (p *proposeStream) dropReady() {
	for i := range p.ready {
		p.ready[i].Done.(*streamProposal).ended()
	}
	clear(p.ready)
	p.ready = p.ready[:0]
}

// begin checks one proposal. No command means that it is answered already; the error ends the stream.
func (p *proposeStream) begin(r *quoratepb.Proposal, waits func()) (*kv.Command, *streamProposal, error) {
	id := p.owner.Proposal(r.Session, r.Sequence)
	one := &streamProposal{stream: p, id: id, kind: r.Kind, bytes: len(r.Request)}
	if !p.enter(one, waits) {
		return nil, nil, context.Canceled
	}
	if err := checkName(id); err != nil {
		one.refuse(err)
		return nil, one, nil
	}
	full := p.writer.room(id)
	if full != nil && !r.Again {
		one.refuse(full)
		return nil, one, nil
	}
	command, err := p.writer.admitProposal(p.grpc.Context(), r)
	if err == nil && kv.AsksForPairs(command) { // nothing is read for a request that was not admitted
		one.command = command
	}
	if r.Again && !errors.Is(err, ErrDenied) {
		if result, found := p.writer.options.Clients.FirstResult(id); found {
			one.Complete(result, nil)
			return nil, one, nil
		}
	}
	switch {
	case r.Again && errors.Is(err, ErrNoRoom), err == nil && full != nil && !p.writer.options.Clients.Awaits(id):
		// This member does not know of a first attempt. If there was one, its result will be kept: this is no refusal.
		one.Complete(kv.Result{}, cmp.Or(err, full))
		return nil, one, nil
	case err != nil:
		one.refuse(err)
		return nil, one, nil
	}
	leave, err := p.turn(command, waits)
	switch {
	case err == nil:
		if leave != nil && !p.keepTurn(one, leave) {
			return nil, one, nil
		}
		return command, one, nil
	case r.Again: // it may have been applied, and is no refusal
		one.Complete(kv.Result{}, err)
	default:
		one.refuse(err)
	}
	return nil, one, nil
}

// turn waits until a command may be proposed. Meanwhile nothing is read of the client, which counts as heard: that is not its
// fault.
func (p *proposeStream) turn(command *kv.Command, waits func()) (leave func(), err error) {
	stop := func() {}
	defer func() { stop() }()
	return p.writer.options.KV.Turn(p.grpc.Context(), command, func() {
		waits()
		ctx, cancel := context.WithCancel(p.grpc.Context())
		stop = cancel
		go p.keep(ctx)
	})
}

// keep counts the client as heard until ctx ends.
func (p *proposeStream) keep(ctx context.Context) {
	ticker := time.NewTicker(p.writer.options.Clients.ClientPatience() / keepsPerPatience)
	defer ticker.Stop()
	for ctx.Err() == nil {
		p.writer.options.Clients.KeepClient(p.owner.ID)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// keepsPerPatience is how often a client counts as heard, in the time that it may be silent, while it waits for a turn.
const keepsPerPatience = 4

// keepTurn notes the turn of a proposal. It gives it back, and returns false, if the stream has ended meanwhile.
func (p *proposeStream) keepTurn(one *streamProposal, leave func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		leave()
		return false
	}
	one.leave = sync.OnceFunc(leave)
	return true
}

func checkName(id consensus.ProposalID) error {
	if !id.Session.OfClient() || id.Sequence == 0 || id.Sequence > clients.ClientSessionLength {
		return errProposal
	}
	return nil
}

// enter waits until there is room for one more proposal; false means that the stream has ended, or ends because this member
// has no memory for the proposal and nothing of this stream will give some back. Answers that the client has not taken yet need
// room, too. waits is called before it waits: room comes of answers, also of those to what this message began with.
func (p *proposeStream) enter(one *streamProposal, waits func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := false
	for !p.closed && p.received == nil {
		if !p.full() {
			if p.tab.Take(one.held()) {
				break
			}
			if len(p.unanswered)+len(p.finished) == 0 && p.sending+p.heard.held == 0 {
				p.received = errNoMemory
				break
			}
		}
		if left {
			p.room.Wait()
			continue
		}
		left = true
		p.mu.Unlock()
		waits()
		p.mu.Lock()
	}
	if p.closed || p.received != nil {
		return false
	}
	p.unanswered[one] = struct{}{}
	p.bytes += one.bytes
	p.writer.options.Pending.Add(1)
	return true
}

func (p *proposeStream) full() bool {
	return len(p.unanswered)+len(p.finished) >= maxStreamProposals || p.bytes > maxStreamBytes
}

// leave answers a proposal that has entered, once.
func (p *proposeStream) leave(one *streamProposal, f finished) {
	p.mu.Lock()
	_, waits := p.unanswered[one]
	if waits {
		delete(p.unanswered, one)
		if p.offered[one.id] == one {
			delete(p.offered, one.id)
		}
		p.bytes -= one.bytes
		p.hold(one, &f)
		p.finished = append(p.finished, f)
		p.wait(resultBytes(&f.result))
	}
	p.mu.Unlock()
	if waits {
		p.writer.options.Pending.Add(-1)
		p.signal()
	}
}

func (one *streamProposal) refuse(why error) {
	one.ended()
	one.stream.leave(one, finished{id: one.id, kind: one.kind, refused: why})
}

// ended is called once: when the command was refused, or is complete.
func (one *streamProposal) ended() {
	if one.leave != nil {
		one.leave()
	}
}

// Complete implements proposals.Completion.
func (one *streamProposal) Complete(result kv.Result, err error) {
	one.ended()
	one.stream.leave(one, finished{id: one.id, kind: one.kind, command: one.command, result: result, err: err})
}

func (p *proposeStream) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// open opens a session for the client, beside what it proposes under the others meanwhile.
func (p *proposeStream) open(r *quoratepb.OpenSession) error {
	last := p.owner.Session(r.Above)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opening || len(r.Keep) > maxKeptSessions || r.Above != 0 && !last.OfClient() || r.Above == math.MaxUint64 {
		return errOpening
	}
	p.opening = true
	go func() {
		session, err := p.writer.options.Clients.OpenClientSession(p.grpc.Context(), p.owner.ID, r.Above, r.Keep,
			p.writer.register.neighboursOf(p.owner.ID))
		opened := &quoratepb.SessionOpened{Session: session.Number}
		if err != nil {
			if errors.Is(err, clients.ErrClientID) {
				err = errClientID
			}
			why := status.Convert(etcderr.Wire(err))
			opened = &quoratepb.SessionOpened{Code: uint32(why.Code()), Message: why.Message()}
		}
		p.mu.Lock()
		p.opening, p.opened = false, opened
		p.mu.Unlock()
		p.signal()
	}()
	return nil
}

// close gives up what is unanswered: the client asks again elsewhere.
func (p *proposeStream) close() {
	p.mu.Lock()
	p.closed = true
	p.tab.Close()
	left := p.unanswered
	p.unanswered = nil
	p.room.Broadcast()
	p.mu.Unlock()
	for one := range left {
		if one.leave == nil { // else it says when it was applied
			p.writer.options.Clients.Abandon(one.id, one)
		}
		p.writer.options.Pending.Add(-1)
	}
}
