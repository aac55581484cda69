package member

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/wording"
)

func newJobs(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	cmd := command.Group("jobs", "List, show, watch and cancel changes that the cluster works on",
		newJobsList(s), newJobsShow(s), newJobsWatch(s), newJobsCancel(s))
	cmd.Example = "  quorate member jobs\n  quorate member jobs watch 3f2a\n  quorate member jobs cancel 3f2a"
	refuse := cmd.Args
	cmd.Args = func(cmd *cobra.Command, words []string) error {
		if len(words) == 0 {
			return nil
		}
		return refuse(cmd, words)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return listJobs(cmd.Context(), c) }
	return c.AddTo(cmd)
}

func newJobsList(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "list",
		Short: "List the jobs that are remembered, oldest first",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return listJobs(cmd.Context(), c) },
	})
}

// onJob makes a command that does something with one job.
func onJob(c *command.Connection, cmd *cobra.Command, do func(context.Context, *session, *quoratepb.Job) error) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		ctx := cmd.Context()
		return withSession(ctx, c, func(s *session) error {
			job, err := s.findJob(ctx, words[0])
			if err != nil {
				return err
			}
			return do(ctx, s, job)
		})
	}
	return c.AddTo(cmd)
}

func newJobsShow(s command.Streams) *cobra.Command {
	return onJob(command.NewObjectConnection(s), &cobra.Command{
		Use:   "show ID",
		Short: "Show how far a job is, or how it ended",
	}, func(ctx context.Context, s *session, job *quoratepb.Job) error {
		if !s.Tabular() {
			return s.PrintObject(job)
		}
		cluster, err := s.describeForNames(ctx)
		if err != nil {
			return err
		}
		s.showJob(cluster, job)
		return nil
	})
}

func newJobsWatch(s command.Streams) *cobra.Command {
	return onJob(command.NewObjectConnection(s), &cobra.Command{
		Use:   "watch ID",
		Short: "Show how far a job is until it has ended; status 1 if it fails or is cancelled",
	}, func(ctx context.Context, s *session, job *quoratepb.Job) error { return s.followJob(ctx, job, false) })
}

func newJobsCancel(s command.Streams) *cobra.Command {
	var detach bool
	cmd := onJob(command.NewObjectConnection(s), &cobra.Command{
		Use:   "cancel ID",
		Short: "Stop a job and undo what can be undone",
		Long: "Stop a job and undo what can be undone: newcomers are removed again. A change of voters that is decided is " +
			"not undone;\nthen the job ends as done, with status 1.",
	}, func(ctx context.Context, s *session, job *quoratepb.Job) error {
		err := s.ask(ctx, func(ctx context.Context) (err error) {
			job, err = s.api.CancelJob(ctx, &quoratepb.CancelJobRequest{Id: job.Id})
			return err
		})
		switch {
		case err != nil:
			return err
		case detach:
			return s.printDetached(job)
		}
		return s.followJob(ctx, job, true)
	})
	cmd.Flags().BoolVar(&detach, "detach", false, "ask for it and do not wait until it is done")
	return cmd
}

func (s *session) jobs(ctx context.Context) (*quoratepb.ListJobsResponse, error) {
	var answer *quoratepb.ListJobsResponse
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = s.api.ListJobs(ctx, &quoratepb.ListJobsRequest{})
		return err
	})
	return answer, err
}

// minPrefix is how many digits of an id are enough if no other job begins with them.
const minPrefix = 4

// findJob finds a job by its id: in hexadecimal as we write it, or its beginning, or in decimal as JSON does.
func (s *session) findJob(ctx context.Context, word string) (*quoratepb.Job, error) {
	answer, err := s.jobs(ctx)
	if err != nil {
		return nil, err
	}
	var begin []*quoratepb.Job
	for _, job := range answer.Jobs {
		if command.HexID(job.Id) == strings.ToLower(word) || strconv.FormatUint(job.Id, 10) == word {
			return job, nil
		}
		if len(word) >= minPrefix && strings.HasPrefix(command.HexID(job.Id), strings.ToLower(word)) {
			begin = append(begin, job)
		}
	}
	switch len(begin) {
	case 0:
	case 1:
		return begin[0], nil
	default:
		return nil, command.Refused(fmt.Errorf("%d jobs begin with %q; give more of the id", len(begin), word))
	}
	return nil, command.Refused(fmt.Errorf("the cluster remembers no job %q; see `quorate member jobs`", word))
}

func listJobs(ctx context.Context, c *command.Connection) error {
	return withSession(ctx, c, func(s *session) error {
		answer, err := s.jobs(ctx)
		if err != nil {
			return err
		}
		if !s.Tabular() {
			return s.PrintObject(answer)
		}
		if len(answer.Jobs) == 0 {
			fmt.Fprintln(s.Streams.Err, "no jobs")
			return nil
		}
		s.names.NoteJobs(answer.Jobs...)
		if _, err := s.describeForNames(ctx); err != nil {
			return err
		}
		t := &command.Table{}
		t.Add("ID", "KIND", "STATE", "PHASE", "CREATED", "CHANGE", "MESSAGE")
		for _, j := range answer.Jobs {
			phase := j.Phase
			if wording.Ended(j) || phase == "" {
				phase = "-"
			}
			t.Add(command.HexID(j.Id), progress.Kind(j), j.State, phase, timeText(j.CreatedMs),
				wording.Change(j.Spec, s.names.Of), j.Message)
		}
		t.Print(s.Streams.Out)
		return nil
	})
}

// describeForNames describes the cluster as far as it can be done: jobs are told without a leader too.
func (s *session) describeForNames(ctx context.Context) (*quoratepb.Cluster, error) {
	cluster, err := s.describe(ctx)
	if f, ok := errors.AsType[*command.Failure](err); ok && f.Status == command.StatusUnreachable && ctx.Err() == nil {
		command.Say(s.Streams.Err, fmt.Sprintf("no job moves on at the moment: %v", f.Err))
		return &quoratepb.Cluster{}, nil
	}
	return cluster, err
}

func (s *session) showJob(cluster *quoratepb.Cluster, job *quoratepb.Job) {
	s.names.NoteJobs(job)
	now := time.Now()
	tracker := progress.New(now, job)
	tracker.Observe(now, cluster, nil)
	for _, line := range tracker.Block(now, 0) {
		command.Say(s.Streams.Out, line)
	}
	t := &command.Table{}
	row := func(key, text string) {
		if text != "" {
			t.Add(key, text)
		}
	}
	row("change", wording.Change(job.Spec, s.names.Of))
	row("protocol", job.GetSpec().GetProtocol())
	row("message", job.Message)
	row("undo", wording.Undo(job.Undo))
	row("created", timeText(job.CreatedMs))
	row("started", timeText(job.StartedMs))
	row("ended", timeText(job.EndedMs))
	if job.Config != nil {
		row("began with", "configuration "+wording.ConfigID(job.Config))
	}
	if job.Final != nil {
		row("ended with", "configuration "+wording.ConfigID(job.Final))
	}
	t.Print(s.Streams.Out)
}

// timeText writes a time of the cluster, empty if it has not come.
func timeText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}
