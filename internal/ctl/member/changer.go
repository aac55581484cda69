package member

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// changer is what all commands that change members do: plan, ask, start a job, follow it.
type changer struct {
	*command.Connection
	yes, detach, dryRun bool
	protocol, force     string
	joinWithin          time.Duration // defaultJoin if the command has no newcomers
}

// change is what such a command asks for.
type change struct {
	// spec says it for a cluster as it is: names become ids.
	spec func(*quoratepb.Cluster) (*quoratepb.ChangeSpec, error)
	// etcd does the same by etcd's API, for servers that have no other; nil if it cannot be said there.
	etcd func(context.Context, *clientv3.Client) ([]*pb.Member, error)
}

func newChanger(s command.Streams) *changer {
	return &changer{Connection: command.NewObjectConnection(s), joinWithin: defaultJoin}
}

// addTo gives a command the flags of a change.
func (c *changer) addTo(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask; needed where there is no terminal to ask on")
	cmd.Flags().BoolVar(&c.detach, "detach", false, "start the job and do not wait for it")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "print the plan and change nothing; status 1 if it is blocked")
	return c.Connection.AddTo(cmd)
}

// addProtocolTo gives it the choice of a protocol too.
func (c *changer) addProtocolTo(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&c.protocol, "protocol", "auto",
		"how the voters change: "+command.Alternatives(consensus.ProtocolNames()))
	return cmd
}

// defaultJoin is how long newcomers may take to start if no flag says otherwise.
const defaultJoin = time.Hour

// addJoinTo gives it the patience with newcomers.
func (c *changer) addJoinTo(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().DurationVar(&c.joinWithin, "join-timeout", defaultJoin, "how long newcomers may take to start; then they are "+
		"taken back, and the job fails")
	return cmd
}

// addForceTo gives it the way to change an address that cannot be checked.
func (c *changer) addForceTo(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&c.force, "force", "", "REASON to change peer URLs at which the member does not answer (the former "+
		"ones are kept until it does), or to reset a member that is not known to have lost its disk")
	return cmd
}

// check refuses command lines that make no sense, before a member or the operator is asked.
func (c *changer) check() error {
	if err := consensus.RefuseExperiment(c.protocol); err != nil {
		return command.Usagef("--%v", err)
	}
	if _, known := consensus.ParseProtocol(c.protocol); !known {
		return command.Usagef("--protocol %q: choose %s", c.protocol, command.Alternatives(consensus.ProtocolNames()))
	}
	if !c.yes && !c.dryRun && !c.Streams.Attended {
		return command.Usagef("there is no terminal to ask on: add --yes, or --dry-run to see the plan")
	}
	return nil
}

func (c *changer) run(ctx context.Context, d change) error {
	if err := c.check(); err != nil {
		return err
	}
	return withSession(ctx, c.Connection, func(s *session) error {
		cluster, spec, plan, err := c.plan(ctx, s, d)
		if errors.Is(err, errNoMembership) && d.etcd != nil && !c.dryRun {
			return c.runOnEtcd(ctx, s, d)
		}
		if err != nil {
			return err
		}
		if settled, err := c.judge(ctx, cluster, plan); settled || err != nil {
			return err
		}
		job, err := s.start(ctx, spec)
		if err != nil {
			return err
		}
		if c.detach {
			return s.printDetached(job)
		}
		return s.followJob(ctx, job, false)
	})
}

// maxPlans is how often a plan is made anew because the members changed between looking and planning.
const maxPlans = 3

func (c *changer) plan(ctx context.Context, s *session, d change) (*quoratepb.Cluster, *quoratepb.ChangeSpec,
	*quoratepb.PlanResponse, error) {
	for attempt := 1; ; attempt++ {
		cluster, err := s.describe(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		spec, err := d.spec(cluster)
		if errors.Is(err, wording.ErrUnknownMember) {
			if again, unknown := d.spec(s.withRemoved(ctx, cluster)); unknown == nil {
				spec, err = again, nil
			}
		}
		if err != nil {
			return nil, nil, nil, err
		}
		spec.Protocol, spec.Expected, spec.Force = c.protocol, cluster.Config, c.force
		if c.joinWithin != defaultJoin { // the cluster knows it
			spec.JoinWithinMs = c.joinWithin.Milliseconds()
		}
		if wording.AsksNothing(spec) { // the cluster would refuse to plan it
			return cluster, spec, &quoratepb.PlanResponse{Config: cluster.Config, Leader: cluster.Leader,
				Now: cluster.Strength, Done: true}, nil
		}
		var plan *quoratepb.PlanResponse
		err = s.ask(ctx, func(ctx context.Context) (err error) {
			plan, err = s.api.Plan(ctx, spec)
			return err
		})
		switch {
		case errors.Is(err, errStale) && attempt < maxPlans:
			continue
		case err != nil:
			return nil, nil, nil, err
		}
		spec.After = plan.WaitsFor // the person sees them in the plan
		return cluster, spec, plan, nil
	}
}

// judge shows the plan and reports whether the command ends with it: there is nothing to do, it was a dry run, something
// is in the way, or the person does not want it.
func (c *changer) judge(ctx context.Context, cluster *quoratepb.Cluster, plan *quoratepb.PlanResponse) (bool, error) {
	blocked := len(plan.Blockers) > 0
	last := c.dryRun || plan.Done || blocked
	switch {
	case last && !c.Tabular():
		if err := c.PrintObject(plan); err != nil {
			return true, err
		}
	case plan.Done && !blocked:
		fmt.Fprintln(c.Streams.Out, "nothing to do: the members are as asked")
	case c.Tabular() || !c.yes:
		writePlan(c.Report(), cluster, plan)
	}
	switch {
	case blocked:
		return true, command.Refused(errors.New("the plan is blocked; nothing was changed"))
	case last:
		return true, nil
	}
	return false, c.confirm(ctx)
}

// confirm asks whether to go on.
func (c *changer) confirm(ctx context.Context) error {
	if c.yes {
		return nil
	}
	return c.Streams.Confirm(ctx)
}

// start makes a job. The number that it draws lets it ask again without making two.
func (s *session) start(ctx context.Context, spec *quoratepb.ChangeSpec) (*quoratepb.Job, error) {
	request := &quoratepb.StartRequest{RequestId: 1 + rand.Uint64N(math.MaxUint64), Spec: spec}
	var job *quoratepb.Job
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		job, err = s.api.Start(ctx, request)
		return err
	})
	if f, ok := errors.AsType[*command.Failure](err); ok && f.Status == command.StatusUnreachable {
		return nil, command.Unreachable(fmt.Errorf("%w\nThe job may have begun all the same: see `quorate member "+
			"jobs`, or give the same command again", f.Err))
	}
	return job, err
}

func (s *session) printDetached(job *quoratepb.Job) error {
	if !s.Tabular() {
		return s.PrintObject(job)
	}
	_, err := fmt.Fprintf(s.Streams.Out, "job %x is %s; see `quorate member jobs watch %x`\n", job.Id, job.State, job.Id)
	return err
}

// runOnEtcd makes a change where no plan and no job can be had.
func (c *changer) runOnEtcd(ctx context.Context, s *session, d change) error {
	if !c.yes {
		fmt.Fprintln(c.Streams.Err, "This server is an etcd: the change happens at once, without a plan.")
	}
	if err := c.confirm(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	members, err := d.etcd(bounded, s.client)
	if err != nil {
		return c.Explain(ctx, err, s.client.Endpoints())
	}
	return printCluster(c.Connection, clusterOf(0, members))
}
