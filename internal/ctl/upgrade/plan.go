package upgrade

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/survey"
)

// step is the restart of one member with the new build.
type step struct {
	Member string `json:"member"`
	ID     string `json:"id"`
	Role   string `json:"role"` // learner, follower or leader
	Zone   string `json:"zone,omitempty"`
	Build  string `json:"build"`
	Do     string `json:"do"`
}

// plan is an order of restarts.
type plan struct {
	Steps []step `json:"steps"`
	// Blockers are reasons not to begin, or not to go on.
	Blockers []string `json:"blockers"`
	Done     []string `json:"done"` // members that run the wanted build already
}

func newPlan(s command.Streams) *cobra.Command {
	c := command.NewConnection(s)
	var to string
	cmd := c.AddTo(&cobra.Command{
		Use:   "plan",
		Short: "Print in which order to restart members with a new build; status 1 if one should not begin now",
		Long: "Print in which order to restart members with a new build; status 1 if one should not begin now.\n\n" +
			"Learners come first, for they do not vote; then followers, those of other zones than the leader's before those " +
			"of " +
			"its own; the leader comes last. Give the command again after each restart: with --to it leaves out members " +
			"that run the new build, and says to wait while one has not caught up.",
		Example: "  quorate upgrade plan --to 1.1.0",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, ok := level.ParseRelease(to); (!ok || strings.Count(to, ".") < 2) && cmd.Flags().Changed("to") {
				return command.Usagef("--to %.40q: want the whole version that `quorate version` of the new file prints, "+
					"such as 1.1.0", to)
			}
			cluster, jobs, err := describe(cmd.Context(), c)
			if err != nil {
				return err
			}
			return showPlan(c, planOf(cluster, jobs, to))
		},
	})
	cmd.Flags().StringVar(&to, "to", "", "the new build, as `quorate version` names it: members that run it are left out")
	return cmd
}

// describe returns the cluster and its unfinished jobs. Its alarms are those that any member reports: each member knows of its
// own disk alone.
func describe(
	ctx context.Context, c *command.Connection,
) (cluster *quoratepb.Cluster, unfinished []*quoratepb.Job, err error) {
	err = c.Do(ctx, func(ctx context.Context, client *clientv3.Client) error {
		api := quoratepb.NewMembershipClient(client.ActiveConnection())
		described, err := api.Describe(ctx, &quoratepb.DescribeRequest{})
		if err != nil {
			return err
		}
		jobs, err := api.ListJobs(ctx, &quoratepb.ListJobsRequest{})
		if err != nil {
			return err
		}
		cluster = described.GetCluster()
		cluster.Alarms = reports(ctx, client, cluster)
		for _, job := range jobs.GetJobs() {
			if job.GetState() == "queued" || job.GetState() == "running" {
				unfinished = append(unfinished, job)
			}
		}
		return nil
	})
	return cluster, unfinished, err
}

// surveyTime bounds how long a member that may be down is waited for.
const surveyTime = 2 * time.Second

// reports are the alarms that the leader knows, what the members report themselves, and which of those that the leader hears
// could not be asked: they may have something to report. Of others it is said that the leader does not hear them.
func reports(ctx context.Context, client *clientv3.Client, cluster *quoratepb.Cluster) []string {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	id, seats, err := survey.Seats(ctx, client)
	if err != nil {
		return append(slices.Clone(cluster.GetAlarms()), fmt.Sprintf("the members could not be asked what they report (%s): "+
			"give the command again", command.PlainText(err)))
	}
	asked := survey.Ask(ctx, client, seats)
	unknown := unasked(cluster, id, asked)
	notes := survey.Notes(survey.Listed(asked))
	for _, alarm := range cluster.GetAlarms() {
		if !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, alarm) }) {
			notes = append(notes, alarm)
		}
	}
	return append(notes, unknown...)
}

// unasked names the members that the leader hears and that did not say what they report.
func unasked(cluster *quoratepb.Cluster, id uint64, asked []survey.Member) (texts []string) {
	for _, m := range cluster.GetMembers() {
		if !m.GetStarted() || !m.GetActive() || slices.ContainsFunc(asked, func(a survey.Member) bool {
			return a.Role != survey.Down && a.ID == m.GetId() && a.Cluster == id
		}) {
			continue
		}
		why := "it is not in the list of members"
		for _, a := range asked {
			switch {
			case a.Name != nameOr(m):
			case a.Role != survey.Down:
				why = fmt.Sprintf("%s is answered by member %s", a.Endpoint, command.HexID(a.ID))
			case a.Endpoint == "":
				why = "it has not said yet where it serves clients"
			default:
				why = a.Endpoint + ": " + command.PlainText(a.Err)
			}
		}
		texts = append(texts, fmt.Sprintf("%s did not say what it reports (%s): see that its client URL is reached from here",
			nameOr(m), why))
	}
	return texts
}

// planOf makes the order for a cluster as it is.
func planOf(cluster *quoratepb.Cluster, jobs []*quoratepb.Job, to string) *plan {
	p := &plan{Steps: []step{}, Blockers: Blockers(cluster, jobs), Done: []string{}}
	for _, m := range Order(cluster) {
		switch {
		case !m.GetStarted():
			// Its first start may be with the new build.
		case to != "" && m.GetBuild() == to:
			p.Done = append(p.Done, m.GetName())
		default:
			p.Steps = append(p.Steps, stepOf(m))
		}
	}
	return p
}

func stepOf(m *quoratepb.Member) step {
	s := step{Member: m.GetName(), ID: command.HexID(m.GetId()), Zone: m.GetZone(), Build: m.GetBuild()}
	switch turn(m, m.GetZone()) {
	case 0:
		s.Role, s.Do = "learner", "stop, start the new build"
	case 3:
		s.Role, s.Do = "leader", "stop (it hands leadership over first), start the new build"
	default:
		s.Role, s.Do = "follower", "stop, start the new build"
	}
	return s
}

// Blockers are reasons not to stop any member now, as sentences for people. Jobs are those that have not ended.
func Blockers(cluster *quoratepb.Cluster, jobs []*quoratepb.Job) []string {
	found := []string{}
	if cluster.GetLeader() == 0 {
		found = append(found, "no leader is known: see `quorate status`")
	}
	for _, m := range cluster.GetMembers() {
		switch {
		case !m.GetStarted():
			found = append(found, fmt.Sprintf("%s was added and has not started: start it, or remove it", nameOr(m)))
		case !m.GetActive():
			found = append(found, fmt.Sprintf("the leader does not hear %s: wait if it is starting, else start it with "+
				"either build, or replace it (`quorate member replace`)", nameOr(m)))
		case !m.GetCaughtUp() && !m.GetLeader():
			found = append(found, fmt.Sprintf("%s has not caught up (%s, %s behind): wait", nameOr(m), m.GetState(),
				plural.Of(m.GetLag(), "entry", "entries")))
		}
	}
	strength := cluster.GetStrength()
	if voters := strength.GetVoters(); strength.GetTolerates() < 1 && voters > 2 {
		found = append(found, fmt.Sprintf("no voter may fail now (%d of %d are up and have caught up): a restart would stop "+
			"writes",
			strength.GetActive(), voters))
	}
	if cluster.GetJoint() {
		found = append(found, "the voters are being changed: wait until `quorate member list` shows one set")
	}
	for _, job := range jobs {
		found = append(found, fmt.Sprintf("the job %x (%s) is under way: see `quorate member jobs`", job.GetId(),
			job.GetState()))
	}
	return append(found, cluster.GetAlarms()...)
}

func nameOr(m *quoratepb.Member) string { return cmp.Or(m.GetName(), command.HexID(m.GetId())) }

func showPlan(c *command.Connection, p *plan) error {
	var err error
	if c.JSON() {
		err = command.PrintJSON(c.Streams.Out, p)
	} else {
		writePlan(c.Streams.Out, p)
	}
	if err == nil && len(p.Blockers) > 0 {
		return command.ErrQuiet
	}
	return err
}

func writePlan(w io.Writer, p *plan) {
	for _, b := range p.Blockers {
		command.Say(w, "not now: "+b)
	}
	if len(p.Done) > 0 {
		fmt.Fprintln(w, "done: "+strings.Join(p.Done, ", "))
	}
	if len(p.Steps) == 0 {
		fmt.Fprintln(w, "nothing is left to restart; `quorate upgrade status` says when the feature level rises")
		return
	}
	t := &command.Table{}
	t.Add("STEP", "MEMBER", "ROLE", "ZONE", "BUILD", "DO")
	for i, s := range p.Steps {
		t.Add(command.Number(uint64(i+1)), s.Member, s.Role, cmp.Or(s.Zone, "-"), s.Build, s.Do)
	}
	t.Print(w)
	fmt.Fprintln(w, "After each step wait until `quorate upgrade plan` blocks nothing. With one or two voters writes pause "+
		"meanwhile.")
}
