package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/rpc/etcderr"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// Member is what the checks ask.
type Member interface {
	Leader() consensus.MemberID
	Learner() bool
	Corrupt() bool
	ReadIndex(ctx context.Context) error
	Machine() (machine *apply.Machine, release func())
}

// Options say whose health it is.
type Options struct {
	Member Member
	// Stalled tells whether the member hangs: whether something that every request needs has been at one piece of work
	// for longer than limit. It must not wait for the member.
	Stalled func(limit time.Duration) error
	// LowDisk says in a sentence that the member's disk is nearly full, empty: it has room.
	LowDisk func() string
	Logger  *slog.Logger
}

// Checker asks a member how it is.
type Checker struct {
	options Options
	groups  []*Group

	passed, failed atomic.Uint64 // answers under /health
}

// New makes a checker.
func New(options Options) *Checker {
	if options.LowDisk == nil {
		options.LowDisk = func() string { return "" }
	}
	return &Checker{options: options, groups: newGroups()}
}

// Groups are the checks behind /livez and /readyz.
func (c *Checker) Groups() []*Group { return c.groups }

// Check is one named question about this member's health.
type Check struct {
	Name string
	ask  func(context.Context, Member) error
	// limit is for how long the member may hang before the check fails without being asked: it would hang, too.
	limit time.Duration
	// How it went so far: for the metrics.
	passed, failed atomic.Uint64
	lastFailed     atomic.Bool
}

// Group is the checks behind /livez or /readyz.
type Group struct {
	Name   string
	Checks []*Check
}

// A member that hangs for readyLimit gets no more requests; one that hangs for aliveLimit may be started again, which helps
// against a deadlock but would only harm a member whose disk is slow.
const (
	readyLimit = 10 * time.Second
	aliveLimit = time.Minute
)

func newGroups() []*Group {
	return []*Group{
		{Name: "livez", Checks: []*Check{
			{Name: "progress", ask: asksNothing, limit: aliveLimit},
			{Name: "serializable_read", ask: readsLocally, limit: aliveLimit},
		}},
		{Name: "readyz", Checks: []*Check{
			{Name: "progress", ask: asksNothing, limit: readyLimit},
			{Name: "data_corruption", ask: isIntact, limit: readyLimit},
			{Name: "serializable_read", ask: readsLocally, limit: readyLimit},
			{Name: "linearizable_read", ask: readsLinearizably, limit: readyLimit},
			{Name: "non_learner", ask: isNoLearner, limit: readyLimit},
		}},
	}
}

// asksNothing is for the check that asks only whether the member hangs.
func asksNothing(context.Context, Member) error { return nil }

func readsLocally(_ context.Context, m Member) error {
	machine, release := m.Machine()
	defer release()
	_, _, err := machine.Store().RangeUncounted(&kv.RangeOp{Key: []byte{0}, KeysOnly: true, Limit: 1}, nil)
	return err
}

func readsLinearizably(ctx context.Context, m Member) error {
	if err := m.ReadIndex(ctx); err != nil {
		return etcderr.Text(err)
	}
	return readsLocally(ctx, m)
}

func isIntact(_ context.Context, m Member) error {
	if m.Corrupt() {
		return errors.New("alarm activated: CORRUPT")
	}
	return nil
}

func isNoLearner(_ context.Context, m Member) error {
	if m.Learner() {
		return errors.New("not supported for learner")
	}
	return nil
}

// Run asks checks, but for those that are excluded, and reports a line for each. A failure is logged with the path of
// the probe.
func (c *Checker) Run(
	ctx context.Context, checks []*Check, excluded map[string]bool, path string,
) (report string, healthy bool) {
	var lines strings.Builder
	healthy = true
	for _, check := range checks {
		if excluded[check.Name] {
			continue
		}
		err := c.options.Stalled(check.limit)
		if err == nil {
			err = check.ask(ctx, c.options.Member)
		}
		check.lastFailed.Store(err != nil)
		if err != nil {
			check.failed.Add(1)
			healthy = false
			fmt.Fprintf(&lines, "[-]%s failed: %v\n", check.Name, err)
			continue
		}
		check.passed.Add(1)
		fmt.Fprintf(&lines, "[+]%s ok\n", check.Name)
	}
	if low := c.options.LowDisk(); low != "" {
		// A member whose disk is nearly full serves reads, and the deletions that may free it. If it were not ready, a cluster
		// whose disks all fill at once would serve nothing.
		fmt.Fprintf(&lines, "[!]%s\n", low)
	}
	if !healthy {
		c.options.Logger.Warn("health check failed", "path", path, "reason", lines.String())
	}
	return lines.String(), healthy
}

// Unhealthy is what etcd's older endpoint asks: no alarm but those excluded, a leader, and a read that works. It gives why
// the member is unhealthy, nothing if it is not. A failure is logged with the path of the probe.
func (c *Checker) Unhealthy(ctx context.Context, excluded map[string]bool, serializable bool, path string) string {
	reason := c.unhealthyBecause(ctx, excluded, serializable)
	if reason == "" {
		c.passed.Add(1)
		return ""
	}
	c.failed.Add(1)
	c.options.Logger.Warn("health check failed", "path", path, "reason", reason)
	return reason
}

func (c *Checker) unhealthyBecause(ctx context.Context, excluded map[string]bool, serializable bool) string {
	if err := c.options.Stalled(readyLimit); err != nil {
		return "NO PROGRESS:" + err.Error()
	}
	if low := c.options.LowDisk(); low != "" && !excluded[pb.AlarmType_NOSPACE.String()] {
		return "ALARM NOSPACE: " + low
	}
	for _, alarm := range c.alarms() {
		name := pb.AlarmType(alarm.Kind).String()
		if !excluded[name] {
			return "ALARM " + name
		}
	}
	if serializable {
		if err := readsLocally(ctx, c.options.Member); err != nil {
			return fmt.Sprintf("RANGE ERROR:%s", err)
		}
		return ""
	}
	if c.options.Member.Leader() == consensus.NoMember {
		return "RAFT NO LEADER"
	}
	if err := readsLinearizably(ctx, c.options.Member); err != nil {
		return fmt.Sprintf("RANGE ERROR:%s", err)
	}
	return ""
}

func (c *Checker) alarms() []kv.Alarm {
	machine, release := c.options.Member.Machine()
	defer release()
	return machine.Alarms()
}

// Collect shows how the checks went.
func (c *Checker) Collect(e *metrics.Emitter) {
	e.Counter("etcd_server_health_success", "Health checks passed.", float64(c.passed.Load()))
	e.Counter("etcd_server_health_failures", "Health checks failed.", float64(c.failed.Load()))
	for _, group := range c.groups {
		for _, check := range group.Checks {
			const help = "Health checks by kind and outcome."
			passed, failed := check.passed.Load(), check.failed.Load()
			if passed+failed == 0 {
				continue
			}
			e.Gauge("etcd_server_healthcheck", "1 if the last check of the kind passed.",
				metrics.Bool(!check.lastFailed.Load()), "type", group.Name, "name", check.Name)
			e.Counter("etcd_server_healthchecks_total", help, float64(passed),
				"type", group.Name, "name", check.Name, "status", "success")
			e.Counter("etcd_server_healthchecks_total", help, float64(failed),
				"type", group.Name, "name", check.Name, "status", "error")
		}
	}
}
