package peercall_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/peercall"
)

var (
	errGone     = errors.New("gone")
	errElswhere = errors.New("another one leads")
	errNoLeader = errors.New("nobody leads")
	errTimedOut = errors.New("timed out")
	errStopped  = errors.New("stopped")
)

const mostAnswer = 100

// blocked is an error with fields.
type blocked struct{ Why []string }

func (e *blocked) Error() string { return fmt.Sprint("blocked: ", e.Why) }

var faults = peercall.Faults{
	peercall.Detailed[blocked](1), peercall.Sentinel(2, true, errGone), peercall.Sentinel(3, false, errElswhere),
}

var (
	double = peercall.Method[uint64, uint64]{Name: "double", Question: number, Answer: number, MostAnswer: mostAnswer}
	fenced = peercall.Method[uint64, uint64]{Name: "fenced", Fenced: true, Question: number, Answer: number, MostAnswer: mostAnswer}
	number = peercall.Numbers(1, 1, func(n uint64) []uint64 { return []uint64{n} }, func(l []uint64) uint64 { return l[0] })
)

// fleet is some members; each answers by its table.
type fleet struct {
	tables  map[consensus.MemberID]*peercall.Table
	leaders []consensus.MemberID // one after the other, each time that a caller looks
	asked   int
}

// port is what one of them sees.
type port struct {
	*fleet
	id consensus.MemberID
}

func (p port) ID() consensus.MemberID         { return p.id }
func (p port) LeaderChanged() <-chan struct{} { return nil }
func (p port) Applied() consensus.ConfigID    { return consensus.ConfigID{Index: 7, Term: 2, Stage: 1} }
func (p port) Leader() (id consensus.MemberID) {
	id = p.leaders[0]
	if len(p.leaders) > 1 {
		p.leaders = p.leaders[1:]
	}
	return id
}

func (p port) Call(ctx context.Context, to consensus.MemberID, method string, body []byte, most int) ([]byte, error) {
	if p.asked++; most != mostAnswer {
		return nil, fmt.Errorf("an answer may have %d bytes", most)
	}
	answer, known, err := p.tables[to].Answer(ctx, method, body)
	if !known {
		return nil, status.Error(codes.Unimplemented, "never heard of it")
	}
	return answer, err
}

// ask lets member 1 ask the leader, while member 2 answers by here.
func ask(leaders []consensus.MemberID, m *peercall.Method[uint64, uint64], here func(context.Context, uint64) (uint64, error),
) (uint64, int, error) {
	serve := func(fence error) *peercall.Table {
		t := peercall.NewTable(faults, func(_ context.Context, id consensus.ConfigID) error {
			if id != (consensus.ConfigID{Index: 7, Term: 2, Stage: 1}) {
				return fmt.Errorf("the fence is %v", id)
			}
			return fence
		})
		if here != nil {
			peercall.Serve(t, m, here)
		}
		return t
	}
	f := &fleet{tables: map[consensus.MemberID]*peercall.Table{1: serve(nil), 2: serve(nil), 3: serve(errElswhere)}, leaders: leaders}
	c := peercall.NewCaller(f.tables[1], port{f, 1}, peercall.Options{
		Timeout: 50 * time.Millisecond, Poll: time.Millisecond, Stopping: context.Background(),
		NoLeader: errNoLeader, TimedOut: errTimedOut, Stopped: errStopped,
	})
	got, err := peercall.AtLeader(context.Background(), c, m, 21)
	return got, f.asked, err
}

func twice(_ context.Context, n uint64) (uint64, error) { return 2 * n, nil }

func fails(err error) func(context.Context, uint64) (uint64, error) {
	return func(context.Context, uint64) (uint64, error) { return 0, err }
}

// Ensure that the leader is asked until there is an answer or a final error, and that errors keep their meaning.
func TestAtLeader(t *testing.T) {
	var why *blocked
	for _, tc := range []struct {
		name    string
		leaders []consensus.MemberID
		method  *peercall.Method[uint64, uint64]
		here    func(context.Context, uint64) (uint64, error)
		asked   int // zero: more than once
		want    uint64
		meets   func(error) bool
	}{
		{"the leader answers", []consensus.MemberID{2}, &double, twice, 1, 42, func(err error) bool { return err == nil }},
		{"this member leads", []consensus.MemberID{1}, &double, twice, 0, 42, func(err error) bool { return err == nil }},
		{"behind a fence", []consensus.MemberID{2}, &fenced, twice, 1, 42, func(err error) bool { return err == nil }},
		{"leadership moves", []consensus.MemberID{3, 0, 2}, &fenced, twice, 2, 42, func(err error) bool { return err == nil }},
		{"a final error", []consensus.MemberID{2}, &double, fails(fmt.Errorf("job 7: %w", errGone)), 1, 0,
			func(err error) bool { return errors.Is(err, errGone) && err.Error() == "job 7: gone" }},
		{"an error with fields", []consensus.MemberID{2}, &double, fails(&blocked{[]string{"a", "b"}}), 1, 0,
			func(err error) bool { return errors.As(err, &why) && len(why.Why) == 2 }},
		{"nobody leads", []consensus.MemberID{0}, &double, twice, 0, 0, func(err error) bool { return errors.Is(err, errNoLeader) }},
		{"an unknown method", []consensus.MemberID{2}, &double, nil, 1, 0,
			func(err error) bool { return status.Code(err) == codes.Unimplemented }},
		{"a leader that fails, and then none", []consensus.MemberID{2, 0}, &double, fails(io.ErrUnexpectedEOF), 1, 0,
			func(err error) bool { return errors.Is(err, errTimedOut) && !errors.Is(err, errNoLeader) }},
		{"never the leader", []consensus.MemberID{3}, &fenced, twice, -1, 0,
			func(err error) bool { return errors.Is(err, errTimedOut) && errors.Is(err, errElswhere) }},
	} {
		got, asked, err := ask(tc.leaders, tc.method, tc.here)
		if got != tc.want || !tc.meets(err) || tc.asked >= 0 && asked != tc.asked || tc.asked < 0 && asked < 2 {
			t.Errorf("%s: %d, %v after %d questions, want %d after %d", tc.name, got, err, asked, tc.want, tc.asked)
		}
	}
}

// Ensure that a member whose leader turns it away does not turn away who asks it, as if that one were meant; but that it passes on
// that members do not understand each other.
func TestTable_Answer_ofAnotherMember(t *testing.T) {
	for _, row := range []struct{ leaders, tells codes.Code }{
		{codes.FailedPrecondition, codes.Unavailable}, {codes.ResourceExhausted, codes.Unavailable},
		{codes.Unimplemented, codes.Unimplemented}, {codes.InvalidArgument, codes.InvalidArgument},
	} {
		table := peercall.NewTable(faults, nil)
		peercall.Serve(table, &double, func(context.Context, uint64) (uint64, error) {
			_, _, err := ask([]consensus.MemberID{2}, &double, fails(status.Error(row.leaders, "not you")))
			return 0, err
		})
		body, err := peercall.Encode(&double, consensus.ConfigID{}, 21)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = table.Answer(t.Context(), double.Name, body)
		if status.Code(err) != row.tells || !strings.Contains(err.Error(), "not you") {
			t.Errorf("a leader that answers %v: the member says %v", row.leaders, err)
		}
	}
}

// Ensure that what is cut off or of a newer member is an error, and none that is asked again.
func TestDecode_malformed(t *testing.T) {
	for _, body := range [][]byte{nil, {0}, {0, 0x80}, {1, '{'}, {0, 7, 8}, []byte("\x00{\"id\":7}")} {
		if got, err := peercall.Decode(faults, &double, body); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %d, %v", body, got, err)
		}
	}
	// An error that says nothing is still one whose text can be read.
	if _, err := peercall.Decode(faults, &double, []byte("\x01null")); err == nil || err.Error() == "never" {
		t.Errorf("null: %v", err)
	}
	if _, err := peercall.Decode(faults, &double, []byte("\x63newer")); !errors.Is(err, errors.ErrUnsupported) ||
		err.Error() != "newer" {
		t.Errorf("an error of a newer member: %v", err)
	}
}

// Ensure that an answer, or an error, that is larger than its readers take is not sent, and that it says so.
func TestTable_Answer_large(t *testing.T) {
	for _, row := range []struct {
		text int
		code codes.Code
	}{{mostAnswer - len(": gone") - 1, codes.OK}, {mostAnswer - len(": gone"), codes.ResourceExhausted}} {
		table := peercall.NewTable(faults, nil)
		peercall.Serve(table, &double, fails(fmt.Errorf("%s: %w", strings.Repeat("x", row.text), errGone)))
		body, err := peercall.Encode(&double, consensus.ConfigID{}, 21)
		if err != nil {
			t.Fatal(err)
		}
		answer, _, err := table.Answer(t.Context(), double.Name, body)
		if status.Code(err) != row.code || err == nil && len(answer) != mostAnswer {
			t.Errorf("an error of %d bytes: %d bytes, %v", row.text, len(answer), err)
		}
	}
}

// FuzzTable_Answer: no body of a question stops a member.
func FuzzTable_Answer(f *testing.F) {
	table := peercall.NewTable(faults, func(context.Context, consensus.ConfigID) error { return nil })
	peercall.Serve(table, &fenced, twice)
	body, err := peercall.Encode(&fenced, consensus.ConfigID{Index: 300, Term: 5}, 21)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, known, err := table.Answer(context.Background(), "fenced", body)
		if !known || (answer == nil) == (err == nil) {
			t.Errorf("%v, %v, %v", answer, known, err)
		}
	})
}
