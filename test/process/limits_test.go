package process_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
)

var limitsTime = flag.Duration("limits-noise", 300*time.Millisecond, "for how long TestLimits_noisyUser measures each row")

// Ensure that a limit holds a user back at each member, that the others have their latency back then, that it comes through a
// restart, and that leases of the limited user are renewed meanwhile. With -limits-noise=20s the rows are figures.
func TestLimits_noisyUser(t *testing.T) {
	c := startCluster(t, 3)
	admin := c.connect(c.nodes...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+4**limitsTime)
	defer cancel()
	enableAuth(t, ctx, admin)
	root := c.login("root", c.nodes...)
	for _, do := range []func() error{
		func() error { _, err := root.UserAdd(ctx, "noisy", "noisypw"); return err },
		func() error { _, err := root.UserGrantRole(ctx, "noisy", "some"); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	alice := c.login("alice", c.nodes[0])
	noisy := []*clientv3.Client{c.login("noisy", c.nodes[0]), c.login("noisy", c.nodes[1]), c.login("noisy", c.nodes[2])}
	quiet := measure(t, ctx, alice, nil)
	loud := measure(t, ctx, alice, noisy)

	const most = 50
	rule := &quoratepb.Limit{Name: "noisy", User: "noisy", WritesPerSecond: new(int64)}
	*rule.WritesPerSecond = most
	limits := quoratepb.NewLimitsClient(root.ActiveConnection())
	for {
		_, err := limits.SetLimit(ctx, &quoratepb.SetLimitRequest{Limit: rule})
		if err == nil {
			break
		}
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "level") || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	granted, err := noisy[0].Grant(ctx, 30)
	if err != nil {
		t.Fatal(err)
	}
	limited := measure(t, ctx, alice, noisy)
	for limited.refused == 0 && ctx.Err() == nil { // few calls are made where many processes want the processors
		limited = measure(t, ctx, alice, noisy)
	}
	if _, err := noisy[0].KeepAliveOnce(ctx, granted.ID); err != nil {
		t.Errorf("a renewal of the limited user: %v", err)
	}
	t.Logf("alice alone: %v", quiet)
	t.Logf("beside a noisy user without a limit: %v", loud)
	t.Logf("beside a noisy user with a limit of %d a second: %v", most, limited)
	if allowed := 3 * most * (limited.took.Seconds() + 1.5); float64(limited.noise) > allowed || limited.refused == 0 {
		t.Errorf("%d writes of the noisy user passed in %v at 3 members, and %d were refused; want at most %.0f", limited.noise,
			limited.took, limited.refused, allowed)
	}
	if limited.failed > 0 || quiet.failed > 0 {
		t.Errorf("writes of alice failed: %d, %d", quiet.failed, limited.failed)
	}
	c.nodes[1].kill()
	c.start(c.nodes[1])
	after := c.login("noisy", c.nodes[1])
	for again := (heard{}); again.refused == 0; again = measure(t, ctx, alice, []*clientv3.Client{after}) {
		if ctx.Err() != nil {
			t.Fatal("after a restart nothing is refused")
		}
	}
}

// heard is what a measurement found.
type heard struct {
	took           time.Duration
	puts, failed   int // of alice
	p50, p99, most time.Duration
	noise, refused int64 // of the noisy user
}

func (h heard) String() string {
	return fmt.Sprintf("%d puts, p50 %v, p99 %v, most %v; the noisy user wrote %d, %d were refused", h.puts, h.p50.Round(10*time.Microsecond),
		h.p99.Round(10*time.Microsecond), h.most.Round(10*time.Microsecond), h.noise, h.refused)
}

// measure measures puts of alice, one after the other, beside 64 callers of each client of a noisy user.
func measure(t *testing.T, ctx context.Context, alice *clientv3.Client, noisy []*clientv3.Client) (h heard) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, *limitsTime)
	defer cancel()
	var wg sync.WaitGroup
	var noise, refused atomic.Int64
	for _, client := range noisy {
		for i := range 64 {
			wg.Go(func() {
				for ctx.Err() == nil {
					switch _, err := client.Put(ctx, fmt.Sprint("a/noise/", i), strings.Repeat("v", 512)); status.Code(err) {
					case codes.OK:
						noise.Add(1)
					case codes.ResourceExhausted: // as a client does that is told when to try again
						refused.Add(1)
						wait := time.NewTimer(100 * time.Millisecond)
						select {
						case <-wait.C:
						case <-ctx.Done():
						}
						wait.Stop()
					}
				}
			})
		}
	}
	begun := time.Now()
	var took []time.Duration
	for i := 0; ctx.Err() == nil; i++ {
		began := time.Now()
		_, err := alice.Put(ctx, fmt.Sprint("a", i%10), "v")
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			h.failed++
		}
		took = append(took, time.Since(began))
	}
	h.took = time.Since(begun)
	wg.Wait()
	h.noise, h.refused, h.puts = noise.Load(), refused.Load(), len(took)
	if slices.Sort(took); len(took) > 0 {
		h.p50, h.p99, h.most = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	}
	return h
}
