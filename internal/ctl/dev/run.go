package dev

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/ctl/screen"
	"github.com/quorate/quorate/internal/ctl/survey"
)

// Options say what to run and where to show it.
type Options struct {
	Dir      string
	Members  int    // 0: as before in Dir, or 3; 5 at as many sites
	BasePort int    // 0: as before in Dir, or 2379
	Geo      string // round trip between members, "regions" or "off"; empty: as before in Dir, or "off"

	Program string   // what runs a member
	Console bool     // Program has a console
	Args    []string // server flags for every member
	Environ []string // of the members; ETCD_ variables are left out
	Self    string   // how the person calls this program, for commands to copy

	Out      io.Writer
	Terminal bool       // Out is a terminal
	Width    func() int // columns of the terminal; nil or 0: unknown

	Pace Pace
}

// Run runs the cluster until the context ends, which is no error, or until no member can be kept alive.
func Run(ctx context.Context, o Options) error {
	p, err := openPlan(o)
	if err != nil {
		return err
	}
	p.console = o.Console
	held, err := lock(o.Dir)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := checkPorts(p.seats()); err != nil {
		return err
	}
	if err := p.remember(); err != nil {
		return err
	}
	c := newCrew(o, p)
	defer c.spawner.close()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints(p), Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("watch the members: %w", err)
	}
	defer client.Close()
	return c.sail(ctx, client)
}

func newCrew(o Options, p plan) *crew {
	c := &crew{
		options: o, plan: p, pace: o.Pace, spawner: newSpawner(),
		shown: &display{screen: screen.Screen{Out: o.Out, Width: o.Width}, terminal: o.Terminal},
		ended: make(chan ended), restart: make(chan *sailor), answers: make(chan []survey.Member),
		over: make(chan struct{}),
	}
	if c.pace == (Pace{}) {
		c.pace = Brisk
	}
	for _, s := range p.seats() {
		c.members = append(c.members, &sailor{seat: s})
	}
	return c
}

// sail starts the members and watches them until the end.
func (c *crew) sail(ctx context.Context, client *clientv3.Client) error {
	surveys, endSurveys := context.WithCancel(context.Background())
	defer endSurveys()
	defer close(c.over)
	defer c.stop()
	began := time.Now()
	c.say("starting %s in %s", count(len(c.members), "member"), c.plan.dir)
	for _, line := range c.plan.geo.story(c.plan.seats()) {
		c.say("%s", line)
	}
	for _, s := range c.members {
		if err := c.start(s); err != nil {
			return err
		}
	}
	ready, told := false, false
	next := time.NewTimer(c.pace.Poll / 10)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-c.ended:
			c.bury(e, time.Now())
			if c.allLost() {
				return &refusal{ErrAllDown, "no member could be kept alive; see the logs in " + c.plan.dir}
			}
		case s := <-c.restart:
			if err := c.start(s); err != nil {
				return err
			}
		case <-next.C:
			go c.survey(surveys, client, c.seats())
		case members := <-c.answers:
			next.Reset(c.nextSurvey(ready))
			switch {
			case ready:
				c.shown.show(members, c.pids())
			case allSettled(members):
				ready = true
				c.welcome(time.Since(began))
				c.shown.show(members, c.pids())
			case !told && time.Since(began) > c.pace.Patience:
				told = true
				c.say("still waiting for %s; see the logs in %s", unsettled(members), c.plan.dir)
			}
		}
	}
}

func (c *crew) nextSurvey(ready bool) time.Duration {
	if ready {
		return c.pace.Poll
	}
	return c.pace.Poll / 10
}

// survey asks the members and reports; a crew that has stopped is not told any more.
func (c *crew) survey(ctx context.Context, client *clientv3.Client, seats []survey.Seat) {
	bounded, cancel := context.WithTimeout(ctx, c.pace.Poll)
	defer cancel()
	members := survey.Ask(bounded, client, seats)
	select {
	case c.answers <- members:
	case <-ctx.Done():
	}
}

func (c *crew) pids() []int {
	out := make([]int, len(c.members))
	for i, m := range c.members {
		if m.run != nil {
			out[i] = m.run.pid()
		}
	}
	return out
}

// allSettled tells whether every member is up and knows a leader.
func allSettled(members []survey.Member) bool { return unsettled(members) == "" }

func unsettled(members []survey.Member) string {
	var names []string
	for _, m := range members {
		if m.Role == survey.Down || m.Role == survey.Seeking {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, ", ")
}

func endpoints(p plan) []string {
	var out []string
	for _, s := range p.seats() {
		out = append(out, s.endpoint())
	}
	return out
}

// welcome prints what the cluster can be used with, ready to be copied.
func (c *crew) welcome(took time.Duration) {
	all := strings.Join(endpoints(c.plan), ",")
	c.say("%s ready after %.1f s; logs are in %s/*.log\n", count(len(c.members), "member"), took.Seconds(),
		c.plan.dir)
	if c.plan.console {
		c.say("  console: %s\n", c.plan.seats()[0].consoleURL())
	}
	c.say("  export ETCDCTL_ENDPOINTS=%s\n", all)
	self := c.options.Self
	for _, pair := range [][2]string{
		{"put hello world", "put hello world"},
		{"get hello", "get hello"},
		{"watch --prefix he", "watch --prefix he"},
		{"status", "member list -w table"},
	} {
		c.say("  %-*s etcdctl %s", len(self)+24, self+" "+pair[0], pair[1])
	}
	if c.plan.geo.isFar() {
		c.say("  %s latency", self)
	}
	c.say("\nCtrl-C stops all members; their data stays.\n")
}
