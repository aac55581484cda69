package member

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/wording"
)

func newWatch(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print configurations, leaders, jobs and progress as they change",
		Long: "Print configurations, leaders, jobs and progress as they change, one line for each event. The first event\n" +
			"tells how things are, and comes again whenever the connection was lost. Progress that reads as before is left\n" +
			"out. With -o json every event is one object on a line of its own, with -o yaml a document.",
		Example: "  quorate member watch\n  quorate member watch -o json | jq .cluster.leader",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ms := interval.Milliseconds()
			if ms < 0 || ms > 3_600_000 {
				return command.Usagef("--interval %v: choose up to an hour", interval)
			}
			return withSession(cmd.Context(), c, func(s *session) error {
				return s.watchEvents(cmd.Context(), &quoratepb.WatchRequest{IntervalMs: uint32(ms)})
			})
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", 500*time.Millisecond, "how often progress is told at most")
	return c.AddTo(cmd)
}

func (s *session) watchEvents(parent context.Context, r *quoratepb.WatchRequest) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	for seen := range s.openStream(ctx, r) {
		switch {
		case seen.end != nil:
			return seen.end
		case seen.lost != nil:
			command.Say(s.Streams.Err, fmt.Sprintf("connection lost (%s); trying again", command.PlainText(seen.lost)))
		default:
			if err := s.printEvent(seen.event); err != nil {
				return err
			}
		}
	}
	if parent.Err() != nil {
		return parent.Err()
	}
	return command.Unreachable(errors.New("the stream of events has ended"))
}

func (s *session) printEvent(e *quoratepb.Event) error {
	if s.Output == "yaml" {
		fmt.Fprintln(s.Streams.Out, "---")
	}
	if !s.Tabular() {
		return s.PrintObject(e)
	}
	s.names.Note(e.Cluster)
	s.names.NoteJobs(e.Jobs...)
	kind := strings.ToLower(strings.TrimPrefix(e.Kind.String(), "KIND_"))
	line := fmt.Sprintf("%-8s  %s\n", kind, s.eventText(e))
	if line == s.printed && e.Kind == quoratepb.Event_KIND_PROGRESS {
		return nil
	}
	s.printed = line
	_, err := fmt.Fprint(s.Streams.Out, time.Now().Format(time.TimeOnly)+" "+line)
	return err
}

// eventText says in one line what an event tells.
func (s *session) eventText(e *quoratepb.Event) string {
	var parts []string
	switch e.Kind {
	case quoratepb.Event_KIND_CONFIG:
		parts = append(parts, "configuration "+wording.ConfigID(e.Cluster.GetConfig())+", "+wording.Stage(e.Cluster),
			rolesText(e.Cluster))
	case quoratepb.Event_KIND_LEADER:
		if e.Cluster.GetLeader() == 0 {
			parts = append(parts, "nobody leads")
		} else {
			parts = append(parts, fmt.Sprintf("%s leads in term %d", s.names.Of(e.Cluster.Leader), e.Cluster.Term))
		}
	case quoratepb.Event_KIND_JOB:
	case quoratepb.Event_KIND_PROGRESS:
		parts = append(parts, motionText(e.Cluster))
	default:
		parts = append(parts, clusterLine(e.Cluster), rolesText(e.Cluster))
		parts = append(parts, troubles(e.Cluster)...)
	}
	for _, job := range e.Jobs {
		if e.Kind == quoratepb.Event_KIND_JOB || !wording.Ended(job) {
			parts = append(parts, jobText(job))
		}
	}
	return strings.Join(parts, " · ")
}

// jobText says in a few words what a job is at.
func jobText(job *quoratepb.Job) string {
	text := fmt.Sprintf("%s job %x %s", progress.Kind(job), job.Id, job.State)
	if job.Phase != "" && !wording.Ended(job) {
		text += " at " + job.Phase
	}
	if job.Message != "" {
		text += ": " + job.Message
	}
	return text
}

// rolesText lists the members by what they are: voter m1, m2, m3; learner m4.
func rolesText(cluster *quoratepb.Cluster) string {
	var groups []string
	for value := range int32(len(quoratepb.Role_name)) {
		var names []string
		for _, m := range cluster.GetMembers() {
			if int32(m.Role) == value {
				names = append(names, progress.Name(m))
			}
		}
		if len(names) > 0 {
			groups = append(groups, wording.Role(quoratepb.Role(value))+" "+strings.Join(names, ", "))
		}
	}
	return strings.Join(groups, "; ")
}

// motionText says how far members are that receive something, and which are silent.
func motionText(cluster *quoratepb.Cluster) string {
	var parts []string
	for _, m := range cluster.GetMembers() {
		switch {
		case m.Leader:
		case !m.Started && !m.Active:
			parts = append(parts, progress.Name(m)+" not started")
		case !m.Active:
			parts = append(parts, progress.Name(m)+" silent for "+
				progress.Duration(time.Duration(m.SilentMs)*time.Millisecond))
		case m.SnapshotTotalBytes > 0:
			parts = append(parts, fmt.Sprintf("%s snapshot %s of %s at %s/s", progress.Name(m),
				progress.Size(m.SnapshotSentBytes), progress.Size(m.SnapshotTotalBytes), progress.Size(m.BytesPerSecond)))
		case m.Active && m.Lag > 0:
			parts = append(parts, fmt.Sprintf("%s lag %d", progress.Name(m), m.Lag))
		}
	}
	parts = append(parts, troubles(cluster)...)
	if len(parts) == 0 {
		return fmt.Sprintf("all have the log up to %d", cluster.GetLastIndex())
	}
	return strings.Join(parts, "; ")
}
