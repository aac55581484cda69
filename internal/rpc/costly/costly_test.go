package costly_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/apply/applytest"
	"github.com/quorate/quorate/internal/rpc/costly"
)

const valueLen = 10_000

// machine has keys k0000 and so on with values of valueLen, and lease 7 on which they hang.
func machine(t *testing.T, keys int) *apply.Machine {
	t.Helper()
	m := applytest.Open(t, 1, consensus.Config{})
	commands := []kv.Command{{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 60}}, {LeaseGrant: &kv.LeaseGrantOp{ID: 8, TTLSeconds: 60}}}
	for i := range keys {
		commands = append(commands, kv.Command{
			Put: &kv.PutOp{Key: fmt.Appendf(nil, "k%04d", i), Value: make([]byte, valueLen), Lease: 7}})
	}
	var entries []consensus.Entry
	for i := range commands {
		entries = append(entries, consensus.Entry{
			Index: consensus.Index(i + 1), Term: 1, Kind: consensus.EntryCommand, Payload: commands[i].Append(nil)})
	}
	if _, err := m.Apply(entries); err != nil {
		t.Fatal(err)
	}
	return m
}

// bury puts keys with a prefix and deletes them: they are in the store until it is compacted.
func bury(t *testing.T, m *apply.Machine, prefix string, keys int) {
	t.Helper()
	var entries []consensus.Entry
	apply := func(command *kv.Command) {
		entries = append(entries, consensus.Entry{Index: m.Applied().Index + consensus.Index(len(entries)+1), Term: 1,
			Kind: consensus.EntryCommand, Payload: command.Append(nil)})
	}
	for i := range keys {
		apply(&kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "%s%04d", prefix, i)}})
	}
	apply(deletion(prefix, prefix+"~"))
	if _, err := m.Apply(entries); err != nil {
		t.Fatal(err)
	}
}

func deletion(key, end string) *kv.Command {
	return &kv.Command{Delete: &kv.DeleteOp{Key: []byte(key), End: []byte(end)}}
}

// Ensure that the deletions of a command may pass over so much that was deleted before, and no more, however many keys they find,
// and that they end with their context.
func TestDeletions_Visit(t *testing.T) {
	m := machine(t, 100)
	bury(t, m, "dead", 3000)
	count := func(of *costly.Deletions, times int, key, end string) (found int, err error) {
		for range times {
			if err = of.Visit(deletion(key, end).Delete, func([]byte, int) bool { found++; return true }); err != nil {
				break
			}
		}
		return found, err
	}
	for _, c := range []struct {
		name       string
		times      int
		key, end   string
		found      int
		passesMuch bool
	}{
		{"as much as may be", 87, "dead", "deae", 0, false},
		{"more", 90, "dead", "deae", 0, true},
		{"keys that are there", 4000, "k", "l", 400_000, false},
	} {
		found, err := count(costly.NewDeletions(t.Context(), m.Store(), costly.MaxPassed), c.times, c.key, c.end)
		if found != c.found || (status.Code(err) == codes.InvalidArgument) != c.passesMuch || !c.passesMuch && err != nil {
			t.Errorf("%s: %d keys and %v", c.name, found, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := count(costly.NewDeletions(ended, m.Store(), costly.MaxPassed), 1, "dead", "deae"); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that has ended: %v", err)
	}
}

func gateOf(m *apply.Machine) *costly.Gate {
	return costly.New(func() (*apply.Machine, func()) { return m, func() {} })
}

func from(ip string) context.Context {
	return peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}})
}

func compare(target kv.CompareTarget, key, end string) kv.Compare {
	return kv.Compare{Key: []byte(key), End: []byte(end), Target: target, Result: kv.CompareNotEqual, Number: -1, Value: []byte("no")}
}

func txn(compares ...kv.Compare) *kv.Command {
	return &kv.Command{Txn: &kv.TxnOp{Compares: compares, Then: []kv.Op{{Put: &kv.PutOp{Key: []byte("x")}}}}}
}

func repeat(n int, c kv.Compare) []kv.Compare {
	all := make([]kv.Compare, n)
	for i := range all {
		all[i] = c
	}
	return all
}

// Ensure that commands cost what they look at, keep and delete: which ones cost little, which ones wait for a turn, and which ones
// look at too much.
func TestGate_Turn(t *testing.T) {
	const keys = 1500 // 16.5 MB
	m := machine(t, keys)
	bury(t, m, "dead", 200)
	g := gateOf(m)
	ignoring := func(n int) *kv.Command {
		op := &kv.TxnOp{}
		for i := range n {
			op.Then = append(op.Then, kv.Op{Put: &kv.PutOp{Key: fmt.Appendf(nil, "k%04d", i%keys), IgnoreValue: true}})
		}
		return &kv.Command{Txn: op}
	}
	replacing := func(n int, prefix string) *kv.Command {
		op := &kv.TxnOp{}
		for i := range n {
			op.Then = append(op.Then, kv.Op{Put: &kv.PutOp{Key: fmt.Appendf(nil, "%s%04d", prefix, i)}})
		}
		return &kv.Command{Txn: op}
	}
	nested := txn()
	nested.Txn.Else = []kv.Op{{Txn: &kv.TxnOp{Compares: repeat(2, compare(kv.CompareValue, "k", "l"))}}}
	for name, c := range map[string]struct {
		command *kv.Command
		may     bool
		want    string // little, turn, far
	}{
		"a put":                              {&kv.Command{Put: &kv.PutOp{Key: []byte("k0001")}}, false, "little"},
		"a put that keeps its value":         {&kv.Command{Put: &kv.PutOp{Key: []byte("k0001"), IgnoreValue: true}}, true, "little"},
		"many that keep theirs":              {ignoring(7), true, "turn"},
		"too many":                           {ignoring(keys + 200), true, "far"},
		"a few that replace large values":    {replacing(5, "k"), false, "little"},
		"many that do":                       {replacing(20, "k"), true, "turn"},
		"many in a nested transaction":       {&kv.Command{Txn: &kv.TxnOp{Else: []kv.Op{{Txn: replacing(20, "k").Txn}}}}, true, "turn"},
		"many that replace nothing":          {replacing(120, "new"), true, "little"},
		"a transaction of Kubernetes":        {txn(compare(kv.CompareMod, "k0001", "")), false, "little"},
		"a lock":                             {txn(compare(kv.CompareCreate, "k0001", "")), false, "little"},
		"revisions of many single keys":      {txn(repeat(128, compare(kv.CompareMod, "k0001", ""))...), false, "little"},
		"values of some single keys":         {txn(repeat(5, compare(kv.CompareValue, "k0001", ""))...), true, "little"},
		"values of more single keys":         {txn(repeat(8, compare(kv.CompareValue, "k0001", ""))...), true, "turn"},
		"a short range":                      {txn(compare(kv.CompareMod, "k", "k0020")), true, "little"},
		"revisions of a range":               {txn(compare(kv.CompareMod, "k", "l")), true, "turn"},
		"values of a range":                  {txn(compare(kv.CompareValue, "k", "k1400")), true, "turn"},
		"values of a longer one":             {txn(compare(kv.CompareValue, "k", "l"), compare(kv.CompareValue, "k", "k0400")), true, "far"},
		"revisions of a range, again":        {txn(repeat(11, compare(kv.CompareMod, "k", "l"))...), true, "far"},
		"a range that holds no longer":       {txn(repeat(128, kv.Compare{Key: []byte("k"), End: []byte("l")})...), true, "turn"},
		"nested in what may not be done":     {nested, true, "far"},
		"a deletion of few keys":             {&kv.Command{Delete: &kv.DeleteOp{Key: []byte("k"), End: []byte("k0004")}}, true, "little"},
		"a deletion of many":                 {&kv.Command{Delete: &kv.DeleteOp{Key: []byte("k"), End: []byte("l")}}, true, "turn"},
		"a deletion of what is deleted":      {deletion("dead", "deae"), true, "turn"},
		"a deletion of few that are deleted": {deletion("dead", "dead0030"), true, "little"},
		"a deletion of one":                  {&kv.Command{Delete: &kv.DeleteOp{Key: []byte("k0001")}}, false, "little"},
		"the end of a lease with many keys":  {&kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 7}}, true, "turn"},
		"the end of a lease without any":     {&kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 8}}, true, "little"},
		"the end of a lease that is unknown": {&kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 9}}, true, "little"},
	} {
		if got := costly.MayBe(c.command); got != c.may {
			t.Errorf("%s may cost much: %v", name, got)
		}
		if little, err := g.Little(from("10.0.0.1"), c.command); err != nil || little != (c.want == "little") {
			t.Errorf("%s costs little: %v, %v", name, little, err)
		}
		waited := false
		leave, err := g.Turn(from("10.0.0.1"), c.command, func() { waited = true })
		got := "little"
		switch {
		case status.Code(err) == codes.InvalidArgument && strings.Contains(err.Error(), "too large"):
			got = "far"
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case leave != nil:
			got = "turn"
			leave()
		}
		if got != c.want || waited != (c.want == "turn") {
			t.Errorf("%s: %s (waited: %v), want %s", name, got, waited, c.want)
		}
	}
	if in, _ := g.Counts(); in != 0 {
		t.Errorf("%d are in", in)
	}
}

// Ensure that the next command is proposed when the one before it was applied, and not when the call of that one ended.
func TestGate_Propose_inTurn(t *testing.T) {
	m := machine(t, 800) // of which more than a half is in each command
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(m)
		applied := make(chan error)
		var proposals atomic.Int64
		proposed := proposals.Load
		propose := func(ctx context.Context, _ *kv.Command) (kv.Result, error) {
			proposals.Add(1)
			select {
			case err := <-applied:
				return kv.Result{Revision: 5}, err
			case <-ctx.Done():
				return kv.Result{}, ctx.Err()
			}
		}
		large := &kv.Command{Delete: &kv.DeleteOp{Key: []byte("k"), End: []byte("l")}}
		ctx, cancel := context.WithCancel(from("10.0.0.1"))
		outcomes := make(chan string, 10)
		call := func(ctx context.Context, command *kv.Command) {
			go func() {
				result, err := g.Propose(ctx, command, propose)
				outcomes <- fmt.Sprint(result.Revision, " ", err)
			}()
			synctest.Wait()
		}
		call(ctx, large)
		call(from("10.0.0.2"), large)
		if proposed() != 1 {
			t.Errorf("%d are proposed at once", proposed())
		}
		call(from("10.0.0.3"), &kv.Command{Put: &kv.PutOp{Key: []byte("k")}})
		if proposed() != 2 {
			t.Error("a command that costs little waits")
		}
		applied <- nil
		applied <- errors.New("it failed")
		synctest.Wait()
		if proposed() != 3 {
			t.Errorf("after the first was applied %d were proposed", proposed())
		}
		cancel()
		call(ctx, large)
		ctx, cancel = context.WithCancel(from("10.0.0.1"))
		call(ctx, large)
		applied <- nil // of the second
		synctest.Wait()
		cancel() // the call of the third, which is proposed
		synctest.Wait()
		call(from("10.0.0.2"), large)
		if proposed() != 4 {
			t.Errorf("a call has ended, and %d commands were proposed", proposed())
		}
		<-time.After(time.Minute) // the member does not apply it: no caller waits for it without end
		if synctest.Wait(); proposed() != 5 {
			t.Errorf("%d commands were proposed after a minute", proposed())
		}
		<-time.After(time.Minute)
		if in, _ := g.Counts(); in != 0 {
			t.Errorf("%d are in", in)
		}
		close(outcomes)
		for got := range outcomes {
			t.Log(got)
		}
	})
}

// Ensure that too many of one host are refused, and others are not.
func TestGate_Turn_refuses(t *testing.T) {
	m := machine(t, 100)
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(m)
		large := &kv.Command{Delete: &kv.DeleteOp{Key: []byte("k"), End: []byte("l")}}
		ctx, cancel := context.WithCancel(from("10.0.0.1"))
		var refused atomic.Int64
		for range 100 {
			go func() {
				leave, err := g.Turn(ctx, large, func() {})
				switch {
				case status.Code(err) == codes.ResourceExhausted:
					refused.Add(1)
				case err == nil:
					defer leave()
				}
				<-ctx.Done()
			}()
			synctest.Wait()
		}
		if in, counted := g.Counts(); in != 64 || refused.Load() != 36 || counted != 36 {
			t.Errorf("%d are in, %d were refused, %d counted", in, refused.Load(), counted)
		}
		done := make(chan error)
		go func() {
			leave, err := g.Turn(from("10.0.0.2"), large, func() {})
			if err == nil {
				leave()
			}
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("another host: %v", err)
		}
		synctest.Wait()
		if in, _ := g.Counts(); in != 0 {
			t.Errorf("%d are in", in)
		}
	})
}

// Ensure that the look at what many puts replace ends with the call.
func TestGate_Turn_endsWithCall(t *testing.T) {
	g, many := gateOf(machine(t, 1)), &kv.TxnOp{}
	for range 4000 {
		many.Then = append(many.Then, kv.Op{Put: &kv.PutOp{Key: []byte("absent")}})
	}
	ctx, cancel := context.WithCancel(from("10.0.0.1"))
	if _, err := g.Turn(ctx, &kv.Command{Txn: many}, func() {}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := g.Turn(ctx, &kv.Command{Txn: many}, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that has ended: %v", err)
	}
}

// Ensure that values that puts keep are written again at a bounded rate, also by puts that cost little each; that a few need not
// wait; and that other commands do not wait for them.
func TestGate_Turn_keepsInPace(t *testing.T) {
	m := machine(t, 10)
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(m)
		op := &kv.TxnOp{}
		for i := range 5 {
			op.Then = append(op.Then, kv.Op{Put: &kv.PutOp{Key: fmt.Appendf(nil, "k%04d", i), IgnoreValue: true}})
		}
		const each, callers, calls = 5 * valueLen, 16, 100
		keep := &kv.Command{Txn: op}
		start, turns := time.Now(), atomic.Int64{}
		if leave, err := g.Turn(from("10.0.0.1"), keep, func() {}); leave != nil || err != nil {
			t.Fatalf("the first one waits, %v", err)
		}
		var calling sync.WaitGroup
		for range callers {
			calling.Go(func() {
				for range calls {
					leave, err := g.Turn(from("10.0.0.1"), keep, func() { turns.Add(1) })
					if err != nil {
						t.Error(err)
					}
					if leave != nil {
						leave()
					}
				}
			})
		}
		synctest.Wait()
		if little, err := g.Little(from("10.0.0.1"), keep); little || err != nil {
			t.Errorf("beside these it costs little, %v", err)
		}
		if little, err := g.Little(from("10.0.0.2"), txn(compare(kv.CompareMod, "k", "k0003"))); !little || err != nil {
			t.Errorf("a comparison that keeps nothing waits, %v", err)
		}
		calling.Wait()
		took, kept := time.Since(start), float64(each*callers*calls)
		if fastest := time.Duration((kept - 4<<20) / (32 << 20) * float64(time.Second)); took < fastest || took > 2*fastest {
			t.Errorf("%.0f bytes are kept in %v, want about %v", kept, took, fastest)
		}
		if turns.Load() == 0 {
			t.Error("none has waited")
		}
		<-time.After(time.Second)
		if leave, err := g.Turn(from("10.0.0.1"), keep, func() {}); leave != nil || err != nil {
			t.Errorf("a second later one waits, %v", err)
		}
		if in, _ := g.Counts(); in != 0 {
			t.Errorf("%d are in", in)
		}
	})
}

// released counts how often it was released.
type released struct{ times atomic.Int64 }

func (*released) Take(int) error { return nil }
func (*released) Walk(int) error { return nil }
func (r *released) Release()     { r.times.Add(1) }

// Ensure that the memory of an answer for which no caller waits any more is given back.
func TestGate_Propose_endedCall(t *testing.T) {
	m := machine(t, 100)
	synctest.Test(t, func(t *testing.T) {
		g, memory, apply := gateOf(m), &released{}, make(chan struct{})
		ctx, cancel := context.WithCancel(from("10.0.0.1"))
		ended := make(chan error)
		go func() {
			_, err := g.Propose(ctx, &kv.Command{Delete: &kv.DeleteOp{Key: []byte("k"), End: []byte("l"), PrevKV: true}},
				func(context.Context, *kv.Command) (kv.Result, error) {
					<-apply
					return kv.Result{Revision: 5, Memory: memory}, nil
				})
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the call ends with %v", err)
		}
		close(apply)
		synctest.Wait()
		if in, _ := g.Counts(); in != 0 || memory.times.Load() != 1 {
			t.Errorf("%d are in, and the memory was released %d times", in, memory.times.Load())
		}
	})
}
