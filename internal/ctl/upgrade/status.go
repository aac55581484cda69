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
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
)

// call asks the Upgrade service.
func call(
	ctx context.Context, c *command.Connection, ask func(context.Context, quoratepb.UpgradeClient) (*quoratepb.UpgradeStatus,
		error),
) (answer *quoratepb.UpgradeStatus, err error) {
	err = c.Do(ctx, func(ctx context.Context, client *clientv3.Client) (err error) {
		answer, err = ask(ctx, quoratepb.NewUpgradeClient(client.ActiveConnection()))
		return err
	})
	return answer, err
}

func askStatus(ctx context.Context, api quoratepb.UpgradeClient) (*quoratepb.UpgradeStatus, error) {
	return api.Status(ctx, &quoratepb.UpgradeStatusRequest{})
}

func newStatus(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "status",
		Short: "Show the feature level, what holds it back or when it rises, and until when the former build may return",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := call(cmd.Context(), c, askStatus)
			if err != nil {
				return err
			}
			return show(c, status)
		},
	})
}

// show prints a status.
func show(c *command.Connection, status *quoratepb.UpgradeStatus) error {
	if !c.Tabular() {
		return c.PrintObject(status)
	}
	writeStatus(c.Streams.Out, status)
	return nil
}

func writeStatus(w io.Writer, status *quoratepb.UpgradeStatus) {
	for _, line := range Sentences(status) {
		command.Say(w, line)
	}
	t := &command.Table{}
	t.Add("MEMBER", "ID", "BUILD", "LEVEL")
	for _, m := range status.GetMembers() {
		if m.GetLevel() == 0 {
			t.Add(nameOf(m), command.HexID(m.GetId()), "-", "not started")
			continue
		}
		t.Add(nameOf(m), command.HexID(m.GetId()), m.GetBuild(), command.Number(uint64(m.GetLevel())))
	}
	t.Print(w)
}

// mostWhy bounds what the cluster says of a soak that stands, in characters.
const mostWhy = 600

func nameOf(m *quoratepb.MemberLevel) string {
	if m.GetName() == "" {
		return "-"
	}
	return m.GetName()
}

// Sentences say where the level stands, what comes next, and what the way back is.
func Sentences(status *quoratepb.UpgradeStatus) []string {
	lines := ofLevel(status)
	if to := status.GetDowngradeTo(); to != "" {
		lines = append(lines, fmt.Sprintf("a downgrade to release %s is under way: start its build on every member; then, "+
			"or by `etcdctl downgrade cancel`, policy %s comes back", to, status.GetPolicyBefore()))
	}
	return lines
}

func ofLevel(status *quoratepb.UpgradeStatus) []string {
	active, common := status.GetActive(), status.GetCommon()
	if common <= active {
		return append([]string{fmt.Sprintf("feature level %d is active; policy %s", active, status.GetPolicy())},
			atRest(status)...)
	}
	lines := []string{fmt.Sprintf("feature level %d is active, and all members know level %d: %s", active, common,
		status.GetEnables())}
	policy, err := level.ParsePolicy(status.GetPolicy())
	switch {
	case err != nil:
		lines = append(lines, "the cluster has no policy yet: its leader proposes that of its --level-policy")
	case policy.Kind == level.PolicyHold:
		lines = append(lines, "policy hold: the level rises when `quorate upgrade finalize` says so")
	case policy.Kind == level.PolicyNow:
		lines = append(lines, "policy now: the level rises in a moment")
	default:
		soaked := time.Duration(status.GetSoakedSeconds()) * time.Second
		lines = append(lines, fmt.Sprintf("policy %s: all members have run it for %v; the level rises after %v more. "+
			"Time counts while all members are up, have caught up, and find no fault", policy, soaked,
			max(policy.Soak()-soaked, 0)))
		if why := status.GetPausedBy(); why != "" {
			lines = append(lines, "no time counts now: "+printable.Text(why, mostWhy)+"; see `quorate doctor`. "+
				"`quorate upgrade finalize` does not wait")
		}
	}
	return append(lines, "the former build may return until then; afterwards the way back is a snapshot or `quorate mirror`, "+
		"into a new cluster of that build")
}

// atRest says which members hold the highest known level back, if the members do not know the same one.
func atRest(status *quoratepb.UpgradeStatus) []string {
	highest, behind := uint32(0), []string(nil)
	for _, m := range status.GetMembers() {
		highest = max(highest, m.GetLevel())
	}
	for _, m := range status.GetMembers() {
		switch {
		case m.GetLevel() == 0:
			behind = append(behind, cmp.Or(m.GetName(), command.HexID(m.GetId()))+" (not started)")
		case m.GetLevel() < highest:
			behind = append(behind, fmt.Sprintf("%s (build %s)", nameOf(m), m.GetBuild()))
		}
	}
	if highest <= status.GetActive() {
		if builds := buildsOf(status); len(builds) > 1 {
			return []string{"members run builds " + strings.Join(builds, " and ") + ", which know the same levels: any of " +
				"them may " +
				"run at any member"}
		}
		return nil
	}
	return []string{
		fmt.Sprintf("level %d is held back by %s: start the new build there, or remove them", highest, strings.Join(behind,
			", ")),
		"the former build may return at every member until the level rises",
	}
}

func buildsOf(status *quoratepb.UpgradeStatus) []string {
	var builds []string
	for _, m := range status.GetMembers() {
		if m.GetBuild() != "" && !slices.Contains(builds, m.GetBuild()) {
			builds = append(builds, m.GetBuild())
		}
	}
	slices.Sort(builds)
	return builds
}
