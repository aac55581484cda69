package raising_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/raising"
)

const (
	old  = level.Level(1)
	next = level.Level(2)
)

// cluster carries out what Raisers propose, as package apply does, and says when the level rose.
type cluster struct {
	t    *testing.T
	now  time.Time
	view raising.View
}

func newCluster(t *testing.T, policy string) *cluster {
	p, err := level.ParsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, now: time.Unix(1000, 0), view: raising.View{Active: old, Common: next, Flag: p, AllPublished: true,
		Rise: level.Rise{Born: old}}}
}

// run looks each interval for a time. It returns after how long the level rose, and how many commands were proposed.
func (c *cluster) run(r *raising.Raiser, every, total time.Duration) (rose time.Duration, commands int) {
	c.t.Helper()
	for passed := time.Duration(0); passed <= total; passed += every {
		command, due := r.Look(c.now, &c.view)
		if due {
			commands++
			c.apply(&command)
		}
		if c.view.Active == next {
			return passed, commands
		}
		c.now = c.now.Add(every)
	}
	return -1, commands
}

func (c *cluster) apply(command *kv.Command) {
	c.t.Helper()
	rise := &c.view.Rise
	switch {
	case command.LevelPolicy != nil && command.LevelPolicy.Initial && rise.Policy.Kind == level.PolicyUnset:
		rise.Policy = command.LevelPolicy.Policy
	case command.Raise != nil && !command.Raise.Finalize && rise.Allows(command.Raise.Level):
		c.view.Active = command.Raise.Level
	case command.Soak != nil && command.Soak.Level != rise.Level:
		rise.Level, rise.Seconds = command.Soak.Level, 0
	case command.Soak != nil:
		rise.Seconds = max(rise.Seconds, command.Soak.Seconds)
	default:
		c.t.Fatalf("%+v is refused: %+v", command, rise)
	}
}

// Ensure that the level rises at once, after the soak and not before, or not at all, with few entries of the log.
func TestRaiser_Look_policies(t *testing.T) {
	const day = 24 * time.Hour
	for policy, want := range map[string][2]time.Duration{
		"now": {0, time.Second}, "hold": {-1, -1}, "soak=24h": {day, day + time.Minute}, "soak=10s": {10 * time.Second,
			13 * time.Second},
		"soak=1s": {time.Second, 3 * time.Second},
	} {
		c := newCluster(t, policy)
		rose, commands := c.run(new(raising.Raiser), 100*time.Millisecond, 30*time.Hour)
		if rose < want[0] || rose > want[1] || commands > 130 {
			t.Errorf("%s: rose after %v, with %d commands", policy, rose, commands)
		}
	}
}

// Ensure that time does not count while a member is away, while the leader does not look, or while it jumps; and that leaders
// that follow each other count on.
func TestRaiser_Look_whatCounts(t *testing.T) {
	c := newCluster(t, "soak=1h")
	leader := new(raising.Raiser)
	if rose, _ := c.run(leader, time.Second, 30*time.Minute); rose >= 0 {
		t.Fatalf("rose after %v", rose)
	}
	c.view.Paused = "m2 finds a fault"
	if rose, _ := c.run(leader, time.Second, 2*time.Hour); rose >= 0 {
		t.Errorf("rose after %v without a member", rose)
	}
	c.view.Paused = ""
	c.now = c.now.Add(time.Hour) // the process stood still
	c.run(leader, time.Second, time.Second)
	c.now = c.now.Add(-2 * time.Hour)
	c.run(leader, time.Second, time.Second)
	leader.Rest()
	c.now = c.now.Add(5 * time.Hour)
	noted := c.view.Rise.Soaked(next)
	if noted < 29*time.Minute || noted > 31*time.Minute {
		t.Fatalf("noted %v of 30 minutes", noted)
	}
	var wrong time.Duration
	rose, _ := c.run(new(raising.Raiser), time.Second, time.Hour)
	if wrong = rose - (time.Hour - noted); wrong < 0 || wrong > 2*time.Second {
		t.Errorf("the next leader raises after %v, and %v were noted", rose, noted)
	}
}

// Ensure that a cluster born at the next level rises at once under any policy, and that the policy of a cluster which has one
// is not replaced by a flag.
func TestRaiser_Look_bornAndFlag(t *testing.T) {
	c := newCluster(t, "hold")
	c.view.Rise.Born = next
	if rose, _ := c.run(new(raising.Raiser), time.Second, time.Minute); rose < 0 || rose > 2*time.Second {
		t.Errorf("rose after %v", rose)
	}
	c = newCluster(t, "now")
	c.view.Rise.Policy = level.Policy{Kind: level.PolicyHold}
	if rose, _ := c.run(new(raising.Raiser), time.Second, time.Hour); rose >= 0 {
		t.Errorf("rose after %v although it is held", rose)
	}
}

// Ensure that a soak which the state machine ended begins anew, also if the same level soaks again before the next look.
func TestRaiser_Look_soakEnds(t *testing.T) {
	c := newCluster(t, "soak=1h")
	r := new(raising.Raiser)
	c.run(r, time.Second, 59*time.Minute)
	c.view.Rise.Level, c.view.Rise.Seconds = next, 0
	if rose, _ := c.run(r, time.Second, 2*time.Hour); rose < time.Hour-time.Second {
		t.Errorf("rose %v after the soak had ended", rose)
	}
}

// Ensure that the policy before a downgrade comes back once all members have returned, and that nothing else is proposed then.
func TestRaiser_Look_returned(t *testing.T) {
	c := newCluster(t, "now")
	c.view.Rise.Policy, c.view.Rise.Target = level.Policy{Kind: level.PolicyHold}, level.Release{Minor: 1}
	r := new(raising.Raiser)
	if command, _ := r.Look(c.now, &c.view); command.LevelPolicy != nil {
		t.Errorf("before all have returned: %+v", command.LevelPolicy)
	}
	c.view.Returned, c.view.Common = true, old
	if command, due := r.Look(c.now, &c.view); !due || command.LevelPolicy == nil || !command.LevelPolicy.Returned {
		t.Errorf("all have returned: %+v", command)
	}
}
