package ctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/progress"
)

func newMemberJobs(s Streams) *cobra.Command {
	c := newMemberConnection(s)
	cmd := nouns("jobs", "List, show, watch and cancel changes that the cluster works on",
		newJobsList(s), newJobsShow(s), newJobsWatch(s), newJobsCancel(s))
	cmd.Example = "  quorate member jobs\n  quorate member jobs watch 3f2a\n  quorate member jobs cancel 3f2a"
	refuse := cmd.Args
	cmd.Args = func(cmd *cobra.Command, words []string) error {
		if len(words) == 0 {
			return nil
		}
		return refuse(cmd, words)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.listJobs(cmd.Context()) }
	return c.addTo(cmd)
}

func newJobsList(s Streams) *cobra.Command {
	c := newMemberConnection(s)
	return c.addTo(&cobra.Command{
		Use:   "list",
		Short: "List the jobs that are remembered, oldest first",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.listJobs(cmd.Context()) },
	})
}

// onJob makes a command that does something with one job.
func onJob(c *connection, cmd *cobra.Command, do func(context.Context, *session, *quoratepb.Job) error) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		ctx := cmd.Context()
		return c.membership(ctx, func(s *session) error {
			job, err := s.findJob(ctx, words[0])
			if err != nil {
				return err
			}
			return do(ctx, s, job)
		})
	}
	return c.addTo(cmd)
}

func newJobsShow(s Streams) *cobra.Command {
	return onJob(newMemberConnection(s), &cobra.Command{
		Use:   "show ID",
		Short: "Show how far a job is, or how it ended",
	}, func(ctx context.Context, s *session, job *quoratepb.Job) error {
		if !s.tabular() {
			return s.printObject(job)
		}
		cluster, err := s.describeForNames(ctx)
		if err != nil {
			return err
		}
		s.showJob(cluster, job)
		return nil
	})
}

func newJobsWatch(s Streams) *cobra.Command {
	return onJob(newMemberConnection(s), &cobra.Command{
		Use:   "watch ID",
		Short: "Show how far a job is until it has ended; status 1 if it fails or is cancelled",
	}, func(ctx context.Context, s *session, job *quoratepb.Job) error { return s.followJob(ctx, job, false) })
}

func newJobsCancel(s Streams) *cobra.Command {
	var detach bool
	cmd := onJob(newMemberConnection(s), &cobra.Command{
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
		if hexID(job.Id) == strings.ToLower(word) || strconv.FormatUint(job.Id, 10) == word {
			return job, nil
		}
		if len(word) >= minPrefix && strings.HasPrefix(hexID(job.Id), strings.ToLower(word)) {
			begin = append(begin, job)
		}
	}
	switch len(begin) {
	case 0:
	case 1:
		return begin[0], nil
	default:
		return nil, &failure{StatusRefused, fmt.Errorf("%d jobs begin with %q; give more of the id", len(begin), word)}
	}
	return nil, &failure{StatusRefused, fmt.Errorf("the cluster remembers no job %q; see `quorate member jobs`", word)}
}

func (c *connection) listJobs(ctx context.Context) error {
	return c.membership(ctx, func(s *session) error {
		answer, err := s.jobs(ctx)
		if err != nil {
			return err
		}
		if !s.tabular() {
			return s.printObject(answer)
		}
		if len(answer.Jobs) == 0 {
			fmt.Fprintln(s.streams.Err, "no jobs")
			return nil
		}
		s.meetJobs(answer.Jobs...)
		if _, err := s.describeForNames(ctx); err != nil {
			return err
		}
		t := &table{}
		t.add("ID", "KIND", "STATE", "PHASE", "CREATED", "CHANGE", "MESSAGE")
		for _, j := range answer.Jobs {
			phase := j.Phase
			if ended(j) || phase == "" {
				phase = "-"
			}
			t.add(hexID(j.Id), progress.Kind(j), j.State, phase, timeText(j.CreatedMs), changeText(j.Spec, s.name),
				j.Message)
		}
		t.print(s.streams.Out)
		return nil
	})
}

// describeForNames describes the cluster as far as it can be done: jobs are told without a leader too.
func (s *session) describeForNames(ctx context.Context) (*quoratepb.Cluster, error) {
	cluster, err := s.describe(ctx)
	if f, ok := errors.AsType[*failure](err); ok && f.status == StatusUnreachable && ctx.Err() == nil {
		fmt.Fprintf(s.streams.Err, "no job moves on at the moment: %v\n", f.err)
		return &quoratepb.Cluster{}, nil
	}
	return cluster, err
}

func (s *session) showJob(cluster *quoratepb.Cluster, job *quoratepb.Job) {
	s.meetJobs(job)
	now := time.Now()
	tracker := progress.New(now, job)
	tracker.Observe(now, cluster, nil)
	for _, line := range tracker.Block(now, 0) {
		fmt.Fprintln(s.streams.Out, line)
	}
	t := &table{}
	row := func(key, text string) {
		if text != "" {
			t.add(key, text)
		}
	}
	row("change", changeText(job.Spec, s.name))
	row("protocol", job.GetSpec().GetProtocol())
	row("message", job.Message)
	row("undo", job.Undo)
	row("created", timeText(job.CreatedMs))
	row("started", timeText(job.StartedMs))
	row("ended", timeText(job.EndedMs))
	if job.Config != nil {
		row("began with", "configuration "+configText(job.Config))
	}
	if job.Final != nil {
		row("ended with", "configuration "+configText(job.Final))
	}
	t.print(s.streams.Out)
}

// timeText writes a time of the cluster, empty if it has not come.
func timeText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}
