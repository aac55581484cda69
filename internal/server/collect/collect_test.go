package collect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/server/collect"
	"github.com/quorate/quorate/internal/transport"
)

const testCluster = 0xc1

// fleet is a cluster whose first member collects.
type fleet struct {
	asked atomic.Int64
	// say is what a member answers, and find what is at its peer port.
	say  func(ctx context.Context, id consensus.MemberID, about member.Subject) (proto.Message, error)
	find func(ctx context.Context, id consensus.MemberID) (transport.Presence, error)
	// wire changes what is sent.
	wire  func(id consensus.MemberID, answer []byte) []byte
	own   func() // is called before the first member answers itself; nil: nothing
	n     int
	begun sync.WaitGroup
}

func (f *fleet) members() (all []consensus.Member) {
	for id := range f.n {
		all = append(all, consensus.Member{ID: consensus.MemberID(id + 1), Name: fmt.Sprint("m", id+1),
			PeerURLs: []string{fmt.Sprintf("http://m%d:2380", id+1)}})
	}
	return all
}

func (f *fleet) ask(ctx context.Context, id consensus.MemberID, about member.Subject, _ []byte) ([]byte, error) {
	f.asked.Add(1)
	said, err := f.say(ctx, id, about)
	if err != nil {
		return nil, err
	}
	raw, err := proto.Marshal(said)
	if f.wire != nil {
		raw = f.wire(id, raw)
	}
	return raw, err
}

// new returns the collector of member 1.
func (f *fleet) new(ctx context.Context) *collect.Collector {
	return collect.New(collect.Options{
		Self: 1, Cluster: testCluster, Members: f.members, Ask: f.ask,
		Find: func(ctx context.Context, id consensus.MemberID, _ string) (transport.Presence, error) {
			return f.find(ctx, id)
		},
		Observe: func(context.Context, bool) *quoratepb.Observation {
			if f.own != nil {
				f.own()
			}
			return observation(1)
		},
		Top: func(context.Context, *quoratepb.TopRequest) (*quoratepb.TopAnswer, error) {
			return &quoratepb.TopAnswer{ClusterId: testCluster, MemberId: 1}, nil
		},
		Context: ctx, Go: func(run func()) { f.begun.Go(run) },
	})
}

func observation(id consensus.MemberID) *quoratepb.Observation {
	return &quoratepb.Observation{ClusterId: testCluster, MemberId: uint64(id), Name: fmt.Sprint("m", id), UpMs: 5}
}

// well answers after a moment.
func well(_ context.Context, id consensus.MemberID, about member.Subject) (proto.Message, error) {
	<-time.After(100 * time.Millisecond)
	if about == member.SubjectTop {
		return &quoratepb.TopAnswer{ClusterId: testCluster, MemberId: uint64(id)}, nil
	}
	return observation(id), nil
}

// Ensure that a member which does not answer itself, since its store is being replaced, hands on in time what the others say; that
// the questions to itself that wait have a bound; and that it answers again once it can.
func TestCollector_selfHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replaced, waiting := make(chan struct{}), atomic.Int64{}
		f := &fleet{n: 3, say: well, own: func() {
			waiting.Add(1)
			<-replaced
		}}
		c := f.new(t.Context())
		for range 12 {
			begun := time.Now()
			got, err := c.Observations(t.Context(), false)
			if took := time.Since(begun); err != nil || took > 1600*time.Millisecond {
				t.Fatalf("after %v: %v", took, err)
			}
			first, others := got.GetMembers()[0], got.GetMembers()[1:]
			if first.GetFault() != doctor.FaultBusy || others[0].GetObservation() == nil || others[1].GetObservation() == nil {
				t.Fatalf("got %v", got)
			}
			<-time.After(1100 * time.Millisecond)
		}
		if n := waiting.Load(); n > 8 {
			t.Errorf("%d questions wait", n)
		}
		close(replaced)
		synctest.Wait()
		if got, err := c.Observations(t.Context(), false); err != nil || got.GetMembers()[0].GetObservation() == nil {
			t.Errorf("afterwards: %v, %v", got, err)
		}
		<-time.After(1100 * time.Millisecond)
		f.begun.Wait()
	})
}

// Ensure that two hundred callers cost what one does, that those of the next second get the same answer, and that one who
// leaves ends nothing for the others.
func TestCollector_singleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{n: 3, say: well}
		c := f.new(t.Context())
		var all sync.WaitGroup
		results := make([]*quoratepb.Collected, 200)
		leaving, leave := context.WithCancel(t.Context())
		all.Go(func() { // the first, who begins it
			if _, err := c.Observations(leaving, false); !errors.Is(err, context.Canceled) {
				t.Errorf("one that leaves: %v", err)
			}
		})
		synctest.Wait()
		for i := range results {
			all.Go(func() {
				var err error
				if results[i], err = c.Observations(t.Context(), false); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		for _, one := range results {
			if one != results[0] || len(one.GetMembers()) != 3 {
				t.Fatalf("an answer of its own: %v", one)
			}
		}
		again, err := c.Observations(t.Context(), false)
		if n := f.asked.Load(); n != 2 || err != nil || again != results[0] {
			t.Errorf("two other members were asked %d times, %v", n, err)
		}
		<-time.After(1100 * time.Millisecond)
		again, err = c.Observations(t.Context(), false)
		if n := f.asked.Load(); n != 4 || err != nil || again == results[0] {
			t.Errorf("a second later they were asked %d times, %v", n, err)
		}
		for _, by := range []quoratepb.TopWeight{0, 1, 0, 1} {
			if _, err := c.Top(t.Context(), &quoratepb.TopRequest{By: by}); err != nil {
				t.Error(err)
			}
		}
		if n := f.asked.Load(); n != 8 {
			t.Errorf("for two rankings, asked for twice, they were asked %d times", n-4)
		}
		f.begun.Wait()
	})
}

// Ensure that whatever a member does, the others' answers are there within the bound, and that its fault says what was seen.
func TestCollector_faults(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	unlinked := status.Error(codes.Unavailable, "transport: peer is not connected")
	for _, row := range []struct {
		name string
		say  error // nil: it hangs
		find transport.Presence
		err  error // of the look; context.DeadlineExceeded: it hangs
		want string
		took time.Duration // at most
	}{
		{"an older build", status.Error(codes.Unimplemented, "unknown request"), 0, nil, doctor.FaultUnsupported, 0},
		{"a long answer", fmt.Errorf("%w, and more", transport.ErrLargeAnswer), 0, nil, doctor.FaultLong, 0},
		{"a long answer, by its own word", status.Error(codes.ResourceExhausted, "too long"), 0, nil, doctor.FaultLong, 0},
		{"one that refuses", status.Error(codes.FailedPrecondition, "not \x1b[2Jbound"), 0, nil, doctor.FaultDenied, 0},
		{"one that is gone", unlinked, transport.Silent, nil, doctor.FaultRefused, 0},
		{"one that no peer is known of", transport.ErrUnknownPeer, transport.Silent, nil, doctor.FaultRefused, 0},
		{"one whose host is gone", unlinked, transport.Unsure, transport.ErrUnreachable, doctor.FaultUnreachable, 0},
		{"one behind a proxy", unlinked, transport.Unsure, errors.New("EOF"), doctor.FaultClosed, 0},
		{"one that refuses this member", unlinked, transport.Unsure, &identity.Refusal{Text: "another history"}, doctor.FaultUnlinked, 0},
		{"one whose certificate is not taken", unlinked, transport.Unsure, errors.New("x509: unknown"), doctor.FaultUnlinked, 0},
		{"one that is stopped", unlinked, transport.Unsure, context.DeadlineExceeded, doctor.FaultSilent, 1500 * time.Millisecond},
		{"one that was stopped just now", nil, transport.Unsure, context.DeadlineExceeded, doctor.FaultSilent, 1500 * time.Millisecond},
		{"one that is slow", nil, transport.Present, nil, doctor.FaultBusy, time.Second},
		{"one without a link", unlinked, transport.Present, nil, doctor.FaultUnlinked, 0},
		{"another one in its place", unlinked, transport.Another, nil, doctor.FaultUnlinked, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{n: 3}
			f.say = func(ctx context.Context, id consensus.MemberID, about member.Subject) (proto.Message, error) {
				switch {
				case id == 2:
					return observation(id), nil
				case row.say == nil:
					return nil, hang(ctx)
				}
				return nil, row.say
			}
			f.find = func(ctx context.Context, _ consensus.MemberID) (transport.Presence, error) {
				if errors.Is(row.err, context.DeadlineExceeded) {
					return row.find, hang(ctx)
				}
				return row.find, row.err
			}
			begun := time.Now()
			all, err := f.new(t.Context()).Observations(t.Context(), false)
			if took := time.Since(begun); err != nil || took > row.took {
				t.Fatalf("%s: after %v: %v", row.name, took, err)
			}
			m := all.GetMembers()
			if all.GetByMember() != 1 || len(m) != 3 || m[0].GetObservation() == nil || m[1].GetObservation() == nil ||
				m[2].GetObservation() != nil || m[2].GetFault() != row.want || m[2].GetEndpoint() != "m3:2380" {
				t.Errorf("%s: %v", row.name, all)
			}
			if text := m[2].GetFaultText(); text == "" || strings.Contains(text, "\x1b") {
				t.Errorf("%s: %q", row.name, text)
			}
		})
	}
}

// Ensure that an answer of a liar counts for nothing but the liar, and that many long ones are cut to the bound.
func TestCollector_hostile(t *testing.T) {
	for _, row := range []struct {
		name string
		say  func(o *quoratepb.Observation)
		wire func(id consensus.MemberID, raw []byte) []byte
		want string
	}{
		{"of another member", func(o *quoratepb.Observation) { o.MemberId = 2 }, nil, doctor.FaultOther},
		{"of another cluster", func(o *quoratepb.Observation) { o.ClusterId++ }, nil, doctor.FaultOther},
		{"no message", nil, func(consensus.MemberID, []byte) []byte { return []byte{0xff, 0xff, 0xff} }, doctor.FaultOther},
		{"empty", nil, func(consensus.MemberID, []byte) []byte { return nil }, doctor.FaultOther},
	} {
		f := &fleet{n: 3, wire: func(id consensus.MemberID, raw []byte) []byte {
			if id == 3 && row.wire != nil {
				return row.wire(id, raw)
			}
			return raw
		}}
		f.say = func(_ context.Context, id consensus.MemberID, _ member.Subject) (proto.Message, error) {
			o := observation(id)
			if id == 3 && row.say != nil {
				row.say(o)
			}
			return o, nil
		}
		all, err := f.new(t.Context()).Observations(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		if m := all.GetMembers()[2]; m.GetFault() != row.want || m.GetObservation() != nil || all.GetMembers()[1].GetObservation() == nil {
			t.Errorf("%s: %v", row.name, all)
		}
	}
	f := &fleet{n: 128}
	f.say = func(_ context.Context, id consensus.MemberID, _ member.Subject) (proto.Message, error) {
		o := observation(id)
		for range 1000 {
			o.Troubles = append(o.Troubles, "\x1b[2J"+strings.Repeat("x", 500))
		}
		return o, nil
	}
	all, err := f.new(t.Context()).Observations(t.Context(), false)
	if err != nil || proto.Size(all) > 3<<20+1<<18 || len(all.GetMembers()) != 128 {
		t.Fatalf("%d bytes of %d members, %v", proto.Size(all), len(all.GetMembers()), err)
	}
	told, long := 0, 0
	for _, m := range all.GetMembers() {
		switch {
		case m.GetObservation() != nil:
			told++
			for _, text := range m.GetObservation().GetTroubles() {
				if len(text) > 403 || strings.Contains(text, "\x1b") {
					t.Fatalf("a text of %d bytes: %.20q", len(text), text)
				}
			}
		case m.GetFault() == doctor.FaultLong:
			long++
		}
	}
	if told < 40 || long < 40 || told+long != 128 {
		t.Errorf("%d members are told of, %d are too long", told, long)
	}
}

// Ensure that a member answers others as it answers clients, and that a question which it cannot read, or does not know, is
// refused.
func TestCollector_Answer(t *testing.T) {
	c := (&fleet{n: 3}).new(t.Context())
	raw, err := c.Answer(t.Context(), member.SubjectObservation, nil)
	o := &quoratepb.Observation{}
	if err != nil || proto.Unmarshal(raw, o) != nil || !proto.Equal(o, observation(1)) {
		t.Errorf("got %v, %v", o, err)
	}
	raw, err = c.Answer(t.Context(), member.SubjectTop, nil)
	top := &quoratepb.TopAnswer{}
	if err != nil || proto.Unmarshal(raw, top) != nil || top.GetMemberId() != 1 {
		t.Errorf("got %v, %v", top, err)
	}
	for about, want := range map[member.Subject]codes.Code{
		member.SubjectObservation: codes.InvalidArgument, member.SubjectTop: codes.InvalidArgument, "other": codes.Unimplemented,
	} {
		if _, err := c.Answer(t.Context(), about, []byte{0xff}); status.Code(err) != want {
			t.Errorf("%s: %v", about, err)
		}
	}
}
