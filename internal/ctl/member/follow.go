package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/screen"
	"github.com/quorate/quorate/internal/ctl/wording"
	"github.com/quorate/quorate/internal/membership"
)

// redrawPause is how often the block is drawn while nothing is heard: time goes on.
const redrawPause = 500 * time.Millisecond

// follower shows one job until it has ended.
type follower struct {
	*session
	tracker *progress.Tracker
	screen  screen.Screen
	live    bool            // draw in place
	hinted  map[uint64]bool // newcomers for which the command to start them was shown
	lacking time.Time       // since when the cluster does not know the job; zero if it does
	cluster *quoratepb.Cluster
}

// followJob shows a job until it has ended and returns how it ended; a cancelled one is as it should be if cancelled is
// true. If the context ends first, the job goes on.
func (s *session) followJob(ctx context.Context, job *quoratepb.Job, cancelled bool) error {
	f := &follower{session: s, tracker: progress.New(time.Now(), job), hinted: map[uint64]bool{},
		live: s.Tabular() && s.Streams.Terminal, screen: screen.Screen{Out: s.Report()}}
	if f.live {
		f.screen.Width = command.TerminalWidth
	}
	f.show(true)
	if err := f.follow(ctx); err != nil {
		if ctx.Err() != nil || errors.Is(err, errGone) {
			f.farewell()
		}
		return err
	}
	return f.outcome(cancelled)
}

// errGone is a stream that ended although the command had not ended it.
var errGone = errors.New("the cluster cannot be heard any more")

func (f *follower) follow(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	tick := time.NewTicker(redrawPause)
	defer tick.Stop()
	items := f.openStream(ctx, &quoratepb.WatchRequest{})
	for !wording.Ended(f.tracker.Job()) {
		select {
		case s, open := <-items:
			switch {
			case !open:
				return parent.Err()
			case s.end != nil:
				return fmt.Errorf("%w: %w", errGone, s.end)
			}
			f.see(s)
		case <-tick.C:
			if !f.lacking.IsZero() && time.Since(f.lacking) > f.Timeout {
				return command.Refused(fmt.Errorf("the cluster remembers no job %x", f.tracker.Job().Id))
			}
			f.show(false)
		case <-parent.Done():
			return parent.Err()
		}
	}
	return nil
}

func (f *follower) see(s streamItem) {
	if s.lost != nil {
		f.tracker.Lose(command.PlainText(s.lost))
		if f.live {
			f.show(false)
		} else {
			f.screen.Say("connection lost (%s); the job goes on, trying again", command.PlainText(s.lost))
		}
		return
	}
	f.names.Note(s.event.Cluster)
	f.names.NoteJobs(s.event.Jobs...)
	f.cluster = s.event.Cluster
	id := f.tracker.Job().Id
	at := slices.IndexFunc(s.event.Jobs, func(j *quoratepb.Job) bool { return j.Id == id })
	var job *quoratepb.Job
	switch {
	case at >= 0:
		job, f.lacking = s.event.Jobs[at], time.Time{}
	case s.event.Kind == quoratepb.Event_KIND_STATE && f.lacking.IsZero():
		f.lacking = time.Now() // a member that is behind learns of it in a moment
	}
	f.show(f.tracker.Observe(time.Now(), s.event.Cluster, job))
}

// show draws the block or, where that is impossible, a line if the job has turned to another phase.
func (f *follower) show(turned bool) {
	now := time.Now()
	if !f.live {
		if turned && !wording.Ended(f.tracker.Job()) {
			f.screen.Say("%s", f.tracker.Line(now))
		}
		f.hint()
		return
	}
	f.hint()
	f.screen.Draw(f.tracker.Block(now, f.screen.Columns()))
}

// hint tells once how to start each newcomer that is waited for.
func (f *follower) hint() {
	job := f.tracker.Job()
	if membership.Phase(job.Phase) != membership.PhaseStart || wording.Ended(job) {
		return
	}
	for i, id := range job.Newcomers {
		if f.hinted[id] || i >= len(job.Spec.GetAdd()) || f.cluster == nil || f.started(id) {
			continue
		}
		f.hinted[id] = true
		switch told := strings.Contains(job.Message, "--join"); {
		case !told:
			f.screen.Say("start it on its machine: %s, %s", wording.Start(f.cluster, job.Spec.Add[i]), wording.StartNote)
		case f.live: // the block cuts lines; this one is to be copied
			f.screen.Say("%s", job.Message)
			return
		}
	}
}

func (f *follower) started(id uint64) bool {
	for _, m := range f.cluster.Members {
		if m.Id == id {
			return m.Started || m.Active
		}
	}
	return false
}

// farewell says how to come back to a job that goes on.
func (f *follower) farewell() {
	id := f.tracker.Job().Id
	fmt.Fprintf(f.Streams.Err, "job %x goes on; `quorate member jobs watch %x` shows it, `quorate member jobs cancel %x` "+
		"stops it\n", id, id, id)
}

// outcome says how a job ended.
func (f *follower) outcome(cancelled bool) error {
	job := f.tracker.Job()
	if !f.Tabular() {
		if err := f.PrintObject(job); err != nil {
			return err
		}
	}
	text := f.tracker.Line(time.Now())
	switch membership.State(job.State) {
	case membership.StateDone:
		if cancelled {
			return command.Refused(errors.New("the job could not be cancelled any more: it is " + text))
		}
		if job.Final != nil {
			text += " · configuration " + wording.ConfigID(job.Final)
		}
		if outcome := wording.Outcome(job, f.names); outcome != "" {
			text += " · " + outcome
		}
		command.Say(f.Report(), text)
		printUndo(f.Report(), job.Undo)
		return nil
	case membership.StateCancelled:
		if cancelled {
			command.Say(f.Report(), text)
			return nil
		}
	}
	return command.Refused(fmt.Errorf("job %x %s", job.Id, text))
}
