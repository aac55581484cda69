package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

func newList(s command.Streams) *cobra.Command {
	c := command.NewObjectConnection(s)
	return c.AddTo(&cobra.Command{
		Use:   "list",
		Short: "List the members, and how many of them may fail",
		Long: "List the members, and how many of them may fail.\n\nThe first line shows the quorum, the voters of which a " +
			"majority must be up for anything to be written, and the superquorum: so many of them must be up that a write " +
			"is answered after one round trip (docs/fast-path.md). Without a superquorum writes go on, by the leader, in " +
			"two. \"tolerates 1 more failure\" counts from those that are up and have caught up now. A member is " +
			"\"silent\" if the leader has not heard it for an election timeout.",
		Example: "  quorate member list\n  quorate member list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withSession(cmd.Context(), c, func(s *session) error { return s.listMembers(cmd.Context()) })
		},
	})
}

func (s *session) listMembers(ctx context.Context) error {
	cluster, err := s.describe(ctx)
	if errors.Is(err, errNoMembership) {
		cluster, err = s.describeEtcd(ctx)
	}
	if f, ok := errors.AsType[*command.Failure](err); ok && f.Status == command.StatusUnreachable {
		// Without a leader any member still tells who the members are, as far as it knows.
		if known, unknown := s.describeEtcd(ctx, clientv3.WithSerializable()); unknown == nil {
			return errors.Join(printCluster(s.Connection, known), err)
		}
	}
	if err != nil {
		return err
	}
	return printCluster(s.Connection, cluster)
}

// describeEtcd asks by etcd's API. That tells who the members are, and not how.
func (s *session) describeEtcd(ctx context.Context, options ...clientv3.OpOption) (*quoratepb.Cluster, error) {
	var answer *clientv3.MemberListResponse
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = s.client.MemberList(ctx, options...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return clusterOf(answer.Header.GetClusterId(), answer.Members), nil
}

func clusterOf(id uint64, members []*pb.Member) *quoratepb.Cluster {
	cluster := &quoratepb.Cluster{ClusterId: id}
	for _, m := range members {
		role := quoratepb.Role_ROLE_VOTER
		if m.IsLearner {
			role = quoratepb.Role_ROLE_LEARNER
		}
		cluster.Members = append(cluster.Members, &quoratepb.Member{Id: m.ID, Name: m.Name, PeerUrls: m.PeerURLs,
			ClientUrls: m.ClientURLs, Role: role, Started: m.Name != "" && len(m.ClientURLs) > 0})
	}
	return cluster
}

func printCluster(c *command.Connection, cluster *quoratepb.Cluster) error {
	if !c.Tabular() {
		return c.PrintFields(cluster, isNative(cluster))
	}
	writeCluster(c.Streams.Out, cluster)
	return nil
}

// isNative tells a description from one that an etcd gave: it knows how much the cluster stands.
func isNative(cluster *quoratepb.Cluster) bool { return cluster.Strength != nil }

// writeCluster writes a line about the cluster, if the server knows more than its members, and the table of members.
func writeCluster(w io.Writer, cluster *quoratepb.Cluster) {
	native := isNative(cluster)
	if native {
		command.Say(w, clusterLine(cluster))
	}
	for _, trouble := range troubles(cluster) {
		command.Say(w, trouble)
	}
	zoned := slices.ContainsFunc(cluster.Members, func(m *quoratepb.Member) bool { return m.Zone != "" })
	t := &command.Table{}
	row := func(build, zone string, cells ...string) {
		if cluster.Level > 0 { // else the server is an etcd
			cells = append(cells, build)
		}
		if zoned {
			cells = append(cells, cmp.Or(zone, "-"))
		}
		t.Add(cells...)
	}
	row("BUILD", "ZONE", "ID", "NAME", "ROLE", "STATE", "LAG", "LAST-CONTACT", "PEER-URLS", "CLIENT-URLS")
	for _, m := range cluster.Members {
		name, lag := m.Name, "-"
		if name == "" {
			name = "-"
		}
		if native && m.Started {
			lag = command.Number(m.Lag)
		}
		row(buildText(m), m.Zone, command.HexID(m.Id), name, wording.MemberRole(m), wording.State(m, native), lag,
			wording.Contact(m, native), addressText(m), listText(m.ClientUrls))
	}
	t.Print(w)
}

// buildText is the version of a member's program, and the feature level that it knows.
func buildText(m *quoratepb.Member) string {
	if m.Level == 0 {
		return "-"
	}
	return fmt.Sprintf("%s (level %d)", m.Build, m.Level)
}

// held tells that some members know a higher feature level than the active one.
func held(cluster *quoratepb.Cluster) string {
	var back []string
	higher := false
	for _, m := range cluster.Members {
		higher = higher || m.Level > cluster.Level
		if m.Level <= cluster.Level {
			back = append(back, cmp.Or(m.Name, command.HexID(m.Id)))
		}
	}
	if cluster.Level == 0 || !higher || len(back) == 0 {
		return ""
	}
	return fmt.Sprintf("feature level %d until all members know the next one: upgrade, start or remove %s", cluster.Level,
		strings.Join(back, ", "))
}

// troubles are what an operator should look at, one sentence each.
func troubles(cluster *quoratepb.Cluster) []string {
	var lines []string
	if cluster.GetAdvice() != "" {
		lines = append(lines, "automatic repair: "+cluster.Advice)
	}
	if text := held(cluster); text != "" {
		lines = append(lines, text)
	}
	for _, alarm := range cluster.GetAlarms() {
		lines = append(lines, "alarm: "+alarm)
	}
	return lines
}

// clusterLine says in one line what the cluster is and how much it stands.
func clusterLine(cluster *quoratepb.Cluster) string {
	leader := "no leader"
	if cluster.Leader != 0 {
		leader = "leader " + wording.MemberName(cluster, cluster.Leader)
	}
	parts := []string{"cluster " + command.HexID(cluster.ClusterId), "configuration " + wording.ConfigID(cluster.Config),
		wording.Stage(cluster), leader, "quorum " + wording.Quorum(cluster.Strength),
		"superquorum " + wording.Superquorum(cluster.Strength), wording.Tolerates(cluster.Strength)}
	if cluster.Level > 0 {
		parts = append(parts, fmt.Sprintf("feature level %d", cluster.Level))
	}
	return strings.Join(parts, " · ")
}

// addressText tells where a member is and, until it was found there, where it was.
func addressText(m *quoratepb.Member) string {
	if len(m.FormerUrls) == 0 {
		return listText(m.PeerUrls)
	}
	return listText(m.PeerUrls) + " (not found there; before: " + listText(m.FormerUrls) + ")"
}

func listText(parts []string) string {
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ",")
}
