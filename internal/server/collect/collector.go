package collect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/internal/member"
)

const (
	// answerPatience is how long a member has for its answer, and patience how long a collection asks and looks.
	answerPatience = time.Second
	patience       = 1500 * time.Millisecond
	// mostMembers is how many members are asked, and mostBytes the size of what is collected of them.
	mostMembers = 128
	mostBytes   = 3 << 20
	// ownAtOnce is how many questions to this member itself may be without an answer: it gives none while its store is being
	// replaced.
	ownAtOnce = 8
)

// Options are what a collector needs of its member.
type Options struct {
	Self    consensus.MemberID
	Cluster consensus.ClusterID
	// Members are those of the configuration, with the names that operators know.
	Members func() []consensus.Member
	// Ask asks another member: Member.AskMember. Find looks for a member at a peer URL: Transport.Find.
	Ask  func(ctx context.Context, to consensus.MemberID, about member.Subject, question []byte) ([]byte, error)
	Find finder
	// Observe and Top answer for this member.
	Observe func(ctx context.Context, series bool) *quoratepb.Observation
	Top     func(ctx context.Context, r *quoratepb.TopRequest) (*quoratepb.TopAnswer, error)
	// Context ends with the member, and Go runs a goroutine that the member waits for when it stops.
	Context context.Context
	Go      func(run func())
}

// Collector asks all members. Use New.
type Collector struct {
	o            Options
	turn         sync.Mutex                      // of decoding: see doctor.Decode
	own          chan struct{}                   // of questions to this member that are not answered yet
	observations [2]flight[*quoratepb.Collected] // without and with series
	mu           sync.Mutex
	tops         map[topKey]*flight[*quoratepb.TopAnswer]
}

type topKey struct {
	by     quoratepb.TopWeight
	window quoratepb.TopWindow
}

// New returns the collector of a member.
func New(o Options) *Collector {
	return &Collector{o: o, own: make(chan struct{}, ownAtOnce), tops: map[topKey]*flight[*quoratepb.TopAnswer]{}}
}

// Observations returns what all members observe. The result is shared: it must not be changed. The error is that of ctx.
func (c *Collector) Observations(ctx context.Context, series bool) (*quoratepb.Collected, error) {
	if err := c.o.Context.Err(); err != nil {
		return nil, err // the member stops
	}
	f := &c.observations[0]
	if series {
		f = &c.observations[1]
	}
	return f.get(ctx, c.o.Go, func() *quoratepb.Collected { return c.collect(series) })
}

func (c *Collector) collect(series bool) *quoratepb.Collected {
	out := &quoratepb.Collected{AtMs: time.Now().UnixMilli(), ByMember: uint64(c.o.Self)}
	question := encoded(&quoratepb.ObserveRequest{Series: series})
	heard := c.ask(member.SubjectObservation, question, func() answer { return &quoratepb.Observation{} },
		func(ctx context.Context) (answer, error) { return c.o.Observe(ctx, series), nil })
	for i := range heard {
		h := &heard[i]
		m := &quoratepb.CollectedMember{Id: uint64(h.member.ID), Name: nameOf(&h.member), Endpoint: endpointOf(&h.member),
			Fault: h.fault, FaultText: h.text, AskedMs: h.asked, RoundTripUs: h.took.Microseconds()}
		m.Observation, _ = h.answer.(*quoratepb.Observation)
		out.Members = append(out.Members, m)
	}
	return doctor.Trimmed(out)
}

// Top returns what all members counted; r must be one that a member answers. The result is shared: it must not be changed.
// The error is that of ctx.
func (c *Collector) Top(ctx context.Context, r *quoratepb.TopRequest) (*quoratepb.TopAnswer, error) {
	if err := c.o.Context.Err(); err != nil {
		return nil, err
	}
	key := topKey{r.GetBy(), r.GetWindow()}
	c.mu.Lock()
	f := c.tops[key]
	if f == nil {
		f = &flight[*quoratepb.TopAnswer]{}
		c.tops[key] = f
	}
	c.mu.Unlock()
	return f.get(ctx, c.o.Go, func() *quoratepb.TopAnswer { return c.top(key) })
}

func (c *Collector) top(key topKey) *quoratepb.TopAnswer {
	request := &quoratepb.TopRequest{By: key.by, Window: key.window}
	out := &quoratepb.TopAnswer{ClusterId: uint64(c.o.Cluster), MemberId: uint64(c.o.Self)}
	heard := c.ask(member.SubjectTop, encoded(request), func() answer { return &quoratepb.TopAnswer{} },
		func(ctx context.Context) (answer, error) { return c.o.Top(ctx, request) })
	for i := range heard {
		h := &heard[i]
		m := &quoratepb.TopOfMember{Id: uint64(h.member.ID), Name: printable.Text(nameOf(&h.member), mostText), Fault: h.fault,
			FaultText: h.text}
		m.Answer, _ = h.answer.(*quoratepb.TopAnswer)
		out.Members = append(out.Members, m)
	}
	return out
}

// answer is what a member says, and of which member of which cluster it is.
type answer interface {
	proto.Message
	GetMemberId() uint64
	GetClusterId() uint64
}

// heard is what came of asking a member.
type heard struct {
	member consensus.Member
	answer answer // nil: there is none
	fault  string // then: why; see package doctor
	text   string
	asked  int64 // Unix time in milliseconds, halfway between question and answer
	took   time.Duration
}

// ask asks all members at once.
func (c *Collector) ask(
	about member.Subject, question []byte, empty func() answer, own func(ctx context.Context) (answer, error),
) []heard {
	ctx, cancel := context.WithTimeout(c.o.Context, patience)
	defer cancel()
	members := c.o.Members()
	all := make([]heard, min(len(members), mostMembers))
	var asking sync.WaitGroup
	for i := range all {
		h := &all[i]
		h.member = members[i]
		asking.Go(func() {
			if h.member.ID == c.o.Self {
				c.askSelf(ctx, h, own)
			} else {
				c.askOther(ctx, h, about, question, empty())
			}
		})
	}
	asking.Wait()
	bound(all)
	return all
}

// askSelf asks this member, which may not answer in time either: the others did.
func (c *Collector) askSelf(ctx context.Context, h *heard, own func(ctx context.Context) (answer, error)) {
	type answered struct {
		said answer
		err  error
	}
	begun, told := time.Now(), make(chan answered, 1)
	select {
	case c.own <- struct{}{}:
		c.o.Go(func() {
			defer func() { <-c.own }()
			said, err := own(ctx)
			told <- answered{said, err}
		})
	case <-ctx.Done():
	}
	select {
	case a := <-told:
		if a.err != nil {
			h.fault, h.text = doctor.FaultDenied, printable.Text(a.err.Error(), mostText)
			return
		}
		h.answered(a.said, begun)
		h.took = 0
	case <-ctx.Done():
		h.fault, h.text = doctor.FaultBusy, "it does not say in time what it observes"
	}
}

// askOther asks another member, and looks at its port if it does not answer.
func (c *Collector) askOther(ctx context.Context, h *heard, about member.Subject, question []byte, said answer) {
	asking, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	begun := time.Now()
	raw, err := c.o.Ask(asking, h.member.ID, about, question)
	if err != nil {
		if h.fault, h.text = faultOf(err); h.fault == doctor.FaultUnlinked || h.fault == doctor.FaultBusy {
			h.fault, h.text = look(ctx, c.o.Find, &h.member, h.fault, h.text)
		}
		return
	}
	ended := time.Now()
	c.turn.Lock()
	err = doctor.Decode(raw, said)
	c.turn.Unlock()
	switch {
	case err != nil:
		h.fault, h.text = doctor.FaultOther, "it is no answer to this question"
	case said.GetMemberId() != uint64(h.member.ID) || said.GetClusterId() != uint64(c.o.Cluster):
		h.fault, h.text = doctor.FaultOther, fmt.Sprintf("it says that it is member %x of cluster %x", said.GetMemberId(),
			said.GetClusterId())
	default:
		h.answered(said, begun)
		h.took = ended.Sub(begun)
		h.asked = begun.Add(h.took / 2).UnixMilli()
	}
}

func (h *heard) answered(said answer, begun time.Time) {
	h.answer, h.asked = said, begun.UnixMilli()
}

// bound leaves out the longest answers where all have no room.
func bound(all []heard) {
	size := func(h *heard) int {
		if h.answer == nil {
			return 0
		}
		return proto.Size(h.answer)
	}
	sum := 0
	order := make([]*heard, len(all))
	for i := range all {
		order[i] = &all[i]
		sum += size(&all[i])
	}
	slices.SortStableFunc(order, func(a, b *heard) int { return cmp.Compare(size(b), size(a)) })
	for _, h := range order {
		if sum <= mostBytes {
			return
		}
		sum -= size(h)
		h.answer, h.fault, h.text = nil, doctor.FaultLong, "its answer has no room beside those of the others"
	}
}

func nameOf(m *consensus.Member) string {
	return cmp.Or(m.Name, m.ID.String())
}

// endpointOf is where other members reach a member.
func endpointOf(m *consensus.Member) string {
	var all []string
	for _, url := range m.PeerURLs {
		all = append(all, withoutScheme(url))
	}
	return strings.Join(all, ",")
}

func withoutScheme(url string) string {
	return strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://")
}

// encoded is a question of this build, which always can be encoded.
func encoded(m proto.Message) []byte {
	out, _ := proto.Marshal(m) // only text that is no UTF-8 fails
	return out
}

// Answer answers another member that asks this one. The error is a grpc status.
func (c *Collector) Answer(ctx context.Context, about member.Subject, question []byte) ([]byte, error) {
	switch about {
	case member.SubjectObservation:
		r := &quoratepb.ObserveRequest{}
		if err := proto.Unmarshal(question, r); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		return proto.Marshal(c.o.Observe(ctx, r.GetSeries()))
	case member.SubjectTop:
		r := &quoratepb.TopRequest{}
		if err := proto.Unmarshal(question, r); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		said, err := c.o.Top(ctx, r)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(said)
	}
	return nil, status.Errorf(codes.Unimplemented, "collect: no member tells of %q", about)
}
