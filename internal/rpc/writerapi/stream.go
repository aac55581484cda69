package writerapi

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/admission"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/proposals"
	"github.com/quorate/quorate/internal/rpc/etcderr"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// Clients is what the service asks of a member for its clients: *member.Member.
type Clients interface {
	ProposeFor(id consensus.ProposalID, command *kv.Command, done proposals.Completion) error
	Abandon(id consensus.ProposalID, done proposals.Completion)
	FirstResult(id consensus.ProposalID) (kv.Result, bool)
	OpenClientSession(ctx context.Context, client consensus.MemberID, above uint64, keep []uint64) (consensus.SessionID, error)
	RetireClientSession(session consensus.SessionID)
	KeepClient(client consensus.MemberID)
	ClientPatience() time.Duration

	Footing() member.Footing
	FootingChanged() <-chan struct{}
	ListenFor(client consensus.MemberID, l member.Listener) (detach func(), err error)
	EncodeFor(id consensus.ProposalID, command *kv.Command) (consensus.Proposal, error)
	ExpectFor(
		id consensus.ProposalID, command *kv.Command, done proposals.Completion,
	) (proposal consensus.Proposal, leads bool, err error)
	Offer(client consensus.MemberID, message consensus.Message)
	OfferedBytes() int
}

// What one stream may have waiting at the member, before no more is read from it.
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
	errClientID = status.Error(codes.AlreadyExists, member.ErrClientID.Error())
)

// Member is what the service asks of a member about itself.
type Member interface {
	Learner() bool
	Machine() (machine *apply.Machine, release func())
}

// KV is etcd's KV service, whose requests and responses are in proposals and answers.
type KV interface {
	// Admit reads and checks a request. One that is proposed again was admitted once, and is not held against the quota.
	Admit(ctx context.Context, r *quoratepb.Proposal) (*kv.Command, error)
	// Response is the response to what was applied, which it counts; Reply is the same before that.
	Response(kind quoratepb.Proposal_Kind, result *kv.Result) wire.Encoder
	Reply(kind quoratepb.Proposal_Kind, result *kv.Result) wire.Encoder
	// Complete reads what a result needs beside what was kept of it.
	Complete(ctx context.Context, command *kv.Command, result *kv.Result) error
}

// Options say for whom the service proposes.
type Options struct {
	ClusterID, MemberID uint64
	Member              Member
	Clients             Clients
	KV                  KV
	MaxMessageBytes     int            // that a client may send
	Pending             *atomic.Int64  // proposals, counted with those of etcd's API
	Failed              *atomic.Uint64 // proposals that ended without a result, counted likewise
	Clock               env.Clock
}

// Service is the native Writer service.
type Service struct {
	quoratepb.UnsafeWriterServer
	options  Options
	register clientRegister
	unread   atomic.Uint64 // streams that ended because nobody read the answers
}

// New makes the service of a member.
func New(options Options) *Service {
	w := &Service{options: options}
	w.register.init(options.Clock, options.Clients)
	return w
}

// proposeStream is the stream of one client. The goroutine of the call sends, one more receives, and answers come from
// whoever applies.
type proposeStream struct {
	writer *Service
	grpc   grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse]
	client consensus.MemberID
	wake   chan struct{}
	detach func() // from what the core says to the client; nil before its first offer

	mu         sync.Mutex
	room       sync.Cond
	closed     bool // nobody sends any more
	received   error
	unanswered map[*streamProposal]struct{}
	bytes      int // of unanswered
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
}

// finished is a proposal with what came of it. refused is why it was not proposed at all.
type finished struct {
	id      consensus.ProposalID
	kind    quoratepb.Proposal_Kind
	command *kv.Command
	result  kv.Result
	err     error
	refused error
}

// Propose serves the stream of one client.
func (w *Service) Propose(
	stream grpc.BidiStreamingServer[quoratepb.ProposeRequest, quoratepb.ProposeResponse],
) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if len(first.Key) != quoratepb.ClientKeyBytes {
		return errNoClient
	}
	client := consensus.MemberID(quoratepb.ClientID(first.Key))
	leave, err := w.register.enter(client, admission.CallerOf(stream.Context()))
	if err != nil {
		return err
	}
	defer leave()
	p := &proposeStream{
		writer: w, grpc: stream, client: client, wake: make(chan struct{}, 1),
		unanswered: map[*streamProposal]struct{}{}, offered: map[consensus.ProposalID]*streamProposal{},
	}
	p.room.L = &p.mu
	received := make(chan struct{})
	go func() {
		p.receive(first)
		close(received)
	}()
	err = p.send()
	p.close()
	go func() { // it ends with the call
		<-received
		if p.detach != nil {
			p.detach()
		}
	}()
	return err
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
	p.writer.options.Clients.KeepClient(p.client)
	if request.Open != nil {
		if err := p.open(request.Open); err != nil {
			return err
		}
	}
	if len(request.Retire) > maxRetired {
		return errRetiring
	}
	for _, number := range request.Retire {
		if session := (consensus.SessionID{Member: p.client, Number: number}); session.OfClient() {
			p.writer.options.Clients.RetireClientSession(session)
		}
	}
	if request.Footing != nil {
		return p.fast(request)
	}
	for _, proposal := range request.Proposals {
		if err := p.propose(proposal); err != nil {
			return err
		}
	}
	if request.Open == nil && len(request.Proposals) == 0 {
		p.mu.Lock()
		p.asked, p.ping = true, request.Ping
		p.mu.Unlock()
		p.signal()
	}
	return nil
}

// propose checks one proposal and hands it to the member, or answers it. The error ends the stream.
func (p *proposeStream) propose(r *quoratepb.Proposal) error {
	command, one, err := p.begin(r)
	if err != nil || command == nil {
		return err
	}
	if err := p.writer.options.Clients.ProposeFor(one.id, command, one); err != nil {
		one.refuse(err)
	}
	return nil
}

// begin checks one proposal. No command means that it is answered already; the error ends the stream.
func (p *proposeStream) begin(r *quoratepb.Proposal) (*kv.Command, *streamProposal, error) {
	id := p.name(r)
	one := &streamProposal{stream: p, id: id, kind: r.Kind, bytes: len(r.Request)}
	if !p.enter(one) {
		return nil, nil, context.Canceled
	}
	if err := checkName(id); err != nil {
		one.refuse(err)
		return nil, one, nil
	}
	command, err := p.writer.admitProposal(p.grpc.Context(), id, r)
	if command != nil && kv.AsksForPairs(command) {
		one.command = command
	}
	if r.Again {
		if result, found := p.writer.options.Clients.FirstResult(id); found {
			one.Complete(result, nil)
			return nil, one, nil
		}
	}
	if err != nil {
		one.refuse(err)
		return nil, one, nil
	}
	return command, one, nil
}

// name is the id of a proposal: of no other client, whatever it says.
func (p *proposeStream) name(r *quoratepb.Proposal) consensus.ProposalID {
	return consensus.ProposalID{Session: consensus.SessionID{Member: p.client, Number: r.Session}, Sequence: r.Sequence}
}

func checkName(id consensus.ProposalID) error {
	if !id.Session.OfClient() || id.Sequence == 0 || id.Sequence > member.ClientSessionLength {
		return errProposal
	}
	return nil
}

// enter waits until there is room for one more proposal; false means that the stream has ended. Answers that the client
// has not taken yet need room, too.
func (p *proposeStream) enter(one *streamProposal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && p.received == nil &&
		(len(p.unanswered)+len(p.finished) >= maxStreamProposals || p.bytes > maxStreamBytes) {
		p.room.Wait()
	}
	if p.closed || p.received != nil {
		return false
	}
	p.unanswered[one] = struct{}{}
	p.bytes += one.bytes
	p.writer.options.Pending.Add(1)
	return true
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
	one.stream.leave(one, finished{id: one.id, kind: one.kind, refused: why})
}

// Complete implements proposals.Completion.
func (one *streamProposal) Complete(result kv.Result, err error) {
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
	last := consensus.SessionID{Member: p.client, Number: r.Above}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opening || len(r.Keep) > maxKeptSessions || r.Above != 0 && !last.OfClient() || r.Above == math.MaxUint64 {
		return errOpening
	}
	p.opening = true
	go func() {
		session, err := p.writer.options.Clients.OpenClientSession(p.grpc.Context(), p.client, r.Above, r.Keep)
		opened := &quoratepb.SessionOpened{Session: session.Number}
		if err != nil {
			if errors.Is(err, member.ErrClientID) {
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

// send delivers what there is to say, until the stream ends.
func (p *proposeStream) send() error {
	ctx := p.grpc.Context()
	stand := true
	for {
		changed := p.writer.options.Clients.FootingChanged()
		response, ended, err := p.next()
		if stand && response.Standing == nil {
			response.Standing = p.standing()
		}
		stand = false
		if response.Standing != nil || response.Opened != nil || len(response.Answers) > 0 || len(response.Verdicts) > 0 {
			if err := p.grpc.Send(response); err != nil {
				return err
			}
			continue
		}
		if ended {
			return err
		}
		select {
		case <-p.wake:
		case <-changed:
			stand = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next takes what waits to be said. ended means that nothing will follow, and err why.
func (p *proposeStream) next() (response *quoratepb.ProposeResponse, ended bool, err error) {
	p.mu.Lock()
	opened, asked, ping, answers := p.opened, p.asked, p.ping, p.finished
	p.opened, p.asked, p.finished = nil, false, nil
	said := p.heard.messages
	p.heard.messages = nil
	p.unread = 0
	p.room.Broadcast()
	idle := len(p.unanswered) == 0 && !p.opening
	switch {
	case errors.Is(p.received, io.EOF): // the client asks for nothing more, but wants its answers
		ended = idle
	case p.received != nil:
		ended, err = true, p.received
	}
	p.mu.Unlock()
	response = &quoratepb.ProposeResponse{Opened: opened, Verdicts: p.verdicts(said)}
	size := 0
	for i := range answers {
		answer := p.writer.proposalAnswer(p.grpc.Context(), &answers[i])
		response.Answers = append(response.Answers, answer)
		if size += len(answer.Response) + len(answer.Message); size > maxAnswerBytes {
			p.mu.Lock()
			p.finished = append(answers[i+1:len(answers):len(answers)], p.finished...)
			for k := range answers[i+1:] {
				p.wait(resultBytes(&answers[i+1+k].result))
			}
			p.mu.Unlock()
			break
		}
	}
	if asked {
		response.Standing = p.standing()
		response.Standing.Ping = ping
	}
	return response, ended, err
}

func (p *proposeStream) standing() *quoratepb.Standing {
	f := p.writer.options.Clients.Footing()
	voters := make([]uint64, len(f.Voters))
	for i, id := range f.Voters {
		voters[i] = uint64(id)
	}
	return &quoratepb.Standing{
		Cluster: p.writer.options.ClusterID, Member: p.writer.options.MemberID, Leader: uint64(f.Leader), Term: uint64(f.Term),
		Footing: footing(f.Term, f.Config), Voters: voters, Fast: f.Fast,
		SessionLength: member.ClientSessionLength, MaxUnanswered: maxStreamProposals,
		PatienceMs:      uint64(p.writer.options.Clients.ClientPatience().Milliseconds()),
		MaxMessageBytes: uint64(p.writer.options.MaxMessageBytes),
	}
}

// close gives up what is unanswered: the client asks again elsewhere.
func (p *proposeStream) close() {
	p.mu.Lock()
	p.closed = true
	left := p.unanswered
	p.unanswered = nil
	p.room.Broadcast()
	p.mu.Unlock()
	for one := range left {
		p.writer.options.Clients.Abandon(one.id, one)
		p.writer.options.Pending.Add(-1)
	}
}
