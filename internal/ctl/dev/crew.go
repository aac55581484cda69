package dev

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/ctl/survey"
)

// Pace is how fast a crew acts. The zero value means Brisk.
type Pace struct {
	Poll     time.Duration // between two surveys of a running cluster; while it starts, a tenth of it
	Restart  time.Duration // pause before a dead member is started again
	Window   time.Duration // a member that dies more than MaxDeaths times within it stays down
	Grace    time.Duration // how long a member may take to stop
	Patience time.Duration // how long a start may take before we tell what we are waiting for
}

// Brisk is the pace for people.
var Brisk = Pace{time.Second, time.Second, time.Minute, 10 * time.Second, 10 * time.Second}

const (
	// MaxDeaths is how often a member is started again within the window.
	MaxDeaths = 5
	// statusUsage is how a member ends that was given flags it does not know; trying again cannot help.
	statusUsage = 2
	// statusRemoved is how a member ends that was removed from the cluster for ever.
	statusRemoved = 4
)

// sailor is one member of the crew.
type sailor struct {
	seat
	run    *child
	deaths []time.Time // the latest, within the window
	lost   bool        // stays down
}

// ended is the event that a process has ended.
type ended struct {
	who *sailor
	run *child
	how death
}

// crew is the running cluster. Its fields belong to the goroutine of Run; processes and timers report by channels.
type crew struct {
	options Options
	plan    plan
	pace    Pace
	members []*sailor
	spawner *spawner
	shown   *display

	ended   chan ended
	restart chan *sailor
	answers chan []survey.Member
	over    chan struct{} // closed when no goroutine reads the channels above any more
}

// say prints a line that stays.
func (c *crew) say(format string, args ...any) { c.shown.screen.Say(format, args...) }

func (c *crew) start(s *sailor) error {
	args := append(c.plan.flags(s.seat), c.options.Args...)
	run, err := startChild(c.spawner, c.options.Program, args, withoutServerVariables(c.options.Environ), s.log)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.run = run
	go func() { c.ended <- ended{s, run, run.wait()} }()
	return nil
}

// bury takes note of a death and decides whether the member is started again.
func (c *crew) bury(e ended, now time.Time) {
	s := e.who
	s.run = nil
	words := ""
	if e.how.lastLog != "" {
		words = ": " + e.how.lastLog
	}
	s.deaths = slices.DeleteFunc(s.deaths, func(t time.Time) bool { return now.Sub(t) > c.pace.Window })
	s.deaths = append(s.deaths, now)
	switch {
	case e.how.status == statusUsage && !panicked(e.how.lastLog): // a panic ends with the same status
		s.lost = true
		c.say("%s does not understand its flags and stays down%s", s.name, words)
	case e.how.status == statusRemoved:
		s.lost = true
		c.say("%s was removed from the cluster and stays down; its data in %s can be deleted", s.name, s.dataDir)
	case len(s.deaths) > MaxDeaths:
		s.lost = true
		c.say("%s %s%s", s.name, e.how.how, words)
		c.say("%s died %d times within %s and stays down; see %s, and start again when the cause is gone",
			s.name, len(s.deaths), brief(c.pace.Window), s.log)
	default:
		c.say("%s %s%s (log: %s); starting it again in %s", s.name, e.how.how, words, s.log,
			brief(c.pace.Restart))
		time.AfterFunc(c.pace.Restart, func() {
			select {
			case c.restart <- s:
			case <-c.over:
			}
		})
	}
}

func (c *crew) allLost() bool {
	return !slices.ContainsFunc(c.members, func(s *sailor) bool { return !s.lost })
}

// stop ends all members, politely at first, and waits for them.
func (c *crew) stop() {
	c.shown.screen.Erase() // what the table says is no longer true
	running := c.signal(syscall.SIGTERM)
	if running == 0 {
		return
	}
	c.say("stopping %s", count(running, "member"))
	limit := time.NewTimer(c.pace.Grace)
	defer limit.Stop()
	for c.running() > 0 {
		select {
		case e := <-c.ended:
			e.who.run = nil
		case <-c.restart: // too late
		case <-c.answers:
		case <-limit.C:
			for _, s := range c.members {
				if s.run != nil {
					c.say("%s does not stop within %s, killing it", s.name, brief(c.pace.Grace))
				}
			}
			c.signal(syscall.SIGKILL)
		}
	}
	c.say("stopped; the data stays in %s", c.plan.dir)
}

// signal reaches all running members and counts them.
func (c *crew) signal(s syscall.Signal) int {
	for _, m := range c.members {
		if m.run != nil {
			// A process that has just ended is reported by its wait.
			_ = signalGroup(m.run.cmd.Process, s)
		}
	}
	return c.running()
}

func (c *crew) running() int {
	n := 0
	for _, m := range c.members {
		if m.run != nil {
			n++
		}
	}
	return n
}

func (c *crew) seats() []survey.Seat {
	var out []survey.Seat
	for _, m := range c.members {
		s := survey.Seat{Name: m.name}
		if m.run != nil {
			s.Endpoint = m.endpoint()
		}
		out = append(out, s)
	}
	return out
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// brief writes a duration as people say it.
func brief(d time.Duration) string {
	switch {
	case d >= time.Minute && d%time.Minute == 0:
		return count(int(d/time.Minute), "minute")
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	default:
		return d.String()
	}
}
