package member

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

func newAdd(s command.Streams) *cobra.Command {
	c := newChanger(s)
	var texts []string
	var learner bool
	cmd := &cobra.Command{
		Use:   "add NAME --peer-urls URL[,URL]",
		Short: wording.About("add"),
		Long: "Add a member. It joins as a learner and, unless it is to stay one, votes once it has caught up. Start it when " +
			"the\ncommand tells how. `add PEER-URL…` adds a member without a name.",
		Example: "  quorate member add m4 --peer-urls http://10.0.4.9:2380\n" +
			"  quorate member add m5 --peer-urls http://10.0.4.10:2380 --learner",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			newcomer, err := newcomerOf(words, texts)
			if err != nil {
				return err
			}
			newcomer.Learner = learner
			return c.run(cmd.Context(), change{
				spec: func(*quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
					return &quoratepb.ChangeSpec{Kind: "change", Add: []*quoratepb.Newcomer{newcomer}}, nil
				},
				etcd: func(ctx context.Context, client *clientv3.Client) ([]*pb.Member, error) {
					return c.addToEtcd(ctx, client, newcomer)
				},
			})
		},
	}
	cmd.Flags().StringSliceVar(&texts, "peer-urls", nil, "URLs at which other members reach it")
	cmd.Flags().BoolVar(&learner, "learner", false, "let it stay a learner, which does not vote")
	return c.addJoinTo(c.addProtocolTo(c.addTo(cmd)))
}

// newcomerOf reads NAME and --peer-urls, or URLs alone.
func newcomerOf(words, urls []string) (*quoratepb.Newcomer, error) {
	name := ""
	switch {
	case strings.Contains(words[0], "://"):
		if len(urls) > 0 {
			return nil, command.Usagef("usage: quorate member add NAME --peer-urls URL[,URL]")
		}
		urls = words
	case len(words) > 1:
		return nil, command.Usagef("add takes one NAME; to add several members at once, see `quorate member change`")
	case len(urls) == 0:
		return nil, command.Usagef("say where %s will be reached: --peer-urls URL[,URL]", words[0])
	default:
		name = words[0]
	}
	tidy, err := parsePeerURLs("--peer-urls", urls)
	return &quoratepb.Newcomer{Name: name, PeerUrls: tidy}, err
}

func (c *changer) addToEtcd(ctx context.Context, client *clientv3.Client, n *quoratepb.Newcomer) ([]*pb.Member, error) {
	add := client.MemberAdd
	if n.Learner {
		add = client.MemberAddAsLearner
	}
	answer, err := add(ctx, n.PeerUrls)
	if err != nil {
		return nil, err
	}
	name := n.Name
	if name == "" {
		name = "NAME"
	}
	fmt.Fprintf(c.Streams.Err, "added %s; start it with --initial-cluster-state existing and --initial-cluster %s\n",
		command.HexID(answer.Member.ID), initialCluster(answer, name))
	return answer.Members, nil
}

// initialCluster is what the new member must be started with.
func initialCluster(answer *clientv3.MemberAddResponse, newcomer string) string {
	var parts []string
	for _, m := range answer.Members {
		name := m.Name
		if m.ID == answer.Member.ID {
			name = newcomer
		}
		for _, u := range m.PeerURLs {
			parts = append(parts, name+"="+u)
		}
	}
	return strings.Join(parts, ",")
}

// onMembers makes a command that does one thing to the members that it names. On an etcd it does so to one.
func onMembers(c *changer, cmd *cobra.Command, put func(*quoratepb.ChangeSpec, []uint64),
	etcd func(context.Context, *clientv3.Client, uint64) ([]*pb.Member, error)) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		d := change{spec: func(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
			ids, err := findMembers(cluster, words)
			spec := &quoratepb.ChangeSpec{Kind: "change"}
			put(spec, ids)
			return spec, err
		}}
		if etcd != nil && len(words) == 1 {
			d.etcd = func(ctx context.Context, client *clientv3.Client) ([]*pb.Member, error) {
				id, err := findOnEtcd(ctx, client, words[0])
				if err != nil {
					return nil, err
				}
				return etcd(ctx, client, id)
			}
		}
		return c.run(cmd.Context(), d)
	}
	return c.addTo(cmd)
}

func findOnEtcd(ctx context.Context, client *clientv3.Client, word string) (uint64, error) {
	list, err := client.MemberList(ctx)
	if err != nil {
		return 0, err
	}
	m, err := findMember(clusterOf(0, list.Members), word)
	return m.GetId(), err
}

func newRemove(s command.Streams) *cobra.Command {
	c := newChanger(s)
	return c.addProtocolTo(onMembers(c, &cobra.Command{
		Use:   "remove MEMBER…",
		Short: wording.About("remove"),
		Long: "Remove members for ever: they can come back only as new members. Several are removed in one atomic " +
			"step.\nTo put another member in the place of one, `quorate member replace` is safer.",
		Example: "  quorate member remove m3",
	}, func(spec *quoratepb.ChangeSpec, ids []uint64) { spec.Remove = ids },
		func(ctx context.Context, client *clientv3.Client, id uint64) ([]*pb.Member, error) {
			answer, err := client.MemberRemove(ctx, id)
			if err != nil {
				return nil, err
			}
			return answer.Members, nil
		}))
}

func newPromote(s command.Streams) *cobra.Command {
	c := newChanger(s)
	return c.addProtocolTo(onMembers(c, &cobra.Command{
		Use:     "promote MEMBER…",
		Short:   wording.About("promote"),
		Example: "  quorate member promote m5",
	}, func(spec *quoratepb.ChangeSpec, ids []uint64) { spec.Promote = ids },
		func(ctx context.Context, client *clientv3.Client, id uint64) ([]*pb.Member, error) {
			answer, err := client.MemberPromote(ctx, id)
			if err != nil {
				return nil, err
			}
			return answer.Members, nil
		}))
}

func newDemote(s command.Streams) *cobra.Command {
	c := newChanger(s)
	return c.addProtocolTo(onMembers(c, &cobra.Command{
		Use:     "demote MEMBER…",
		Short:   wording.About("demote"),
		Example: "  quorate member demote m3",
	}, func(spec *quoratepb.ChangeSpec, ids []uint64) { spec.Demote = ids }, nil))
}

func newDrain(s command.Streams) *cobra.Command {
	c := newChanger(s)
	return onMembers(c, &cobra.Command{
		Use:     "drain MEMBER…",
		Short:   wording.About("drain"),
		Example: "  quorate member drain m1",
	}, func(spec *quoratepb.ChangeSpec, ids []uint64) { spec.Kind, spec.Drain = "drain", ids }, nil)
}

const cordonLong = `Keep members from leading, for as long as they are cordoned. They vote, replicate and serve as before.
A leader that is cordoned hands over; no election, hand-over or transfer chooses a cordoned member while another voter that has
caught up can lead. If none can, a cordoned member does lead, until one can again.

The mark is part of the configuration: restarts and elections do not end it, ` + "`member uncordon`" + ` does. A learner may be
cordoned before it votes. The last voter that is not cordoned cannot be. To move leadership once, see ` + "`member drain`" + `.`

func newCordon(s command.Streams) *cobra.Command {
	c := newChanger(s)
	return onMembers(c, &cobra.Command{
		Use:     "cordon MEMBER…",
		Short:   wording.About("cordon"),
		Long:    cordonLong,
		Example: "  quorate member cordon m1",
	}, func(spec *quoratepb.ChangeSpec, ids []uint64) { spec.Cordon = ids }, nil)
}

func newUncordon(s command.Streams) *cobra.Command {
	c := newChanger(s)
	return onMembers(c, &cobra.Command{
		Use:     "uncordon MEMBER…",
		Short:   wording.About("uncordon"),
		Long:    "Let cordoned members lead again. Leadership stays where it is: a later election may choose them.",
		Example: "  quorate member uncordon m1",
	}, func(spec *quoratepb.ChangeSpec, ids []uint64) { spec.Uncordon = ids }, nil)
}

func newUpdate(s command.Streams) *cobra.Command {
	c := newChanger(s)
	var texts []string
	cmd := &cobra.Command{
		Use:   "update MEMBER --peer-urls URL[,URL]",
		Short: wording.About("update"),
		Long: "Change the peer URLs of a member, which must answer at the new ones. There is no need to do so after a move:\n" +
			"start the member at its new place with --initial-advertise-peer-urls, and it tells the others by itself.",
		Example: "  quorate member update m1 --peer-urls http://10.0.4.11:2380",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			urls, err := parsePeerURLs("--peer-urls", append(texts, words[1:]...))
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), change{
				spec: func(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
					m, err := findMember(cluster, words[0])
					return &quoratepb.ChangeSpec{Kind: "change",
						Update: []*quoratepb.NewURLs{{Id: m.GetId(), PeerUrls: urls}}}, err
				},
				etcd: func(ctx context.Context, client *clientv3.Client) ([]*pb.Member, error) {
					id, err := findOnEtcd(ctx, client, words[0])
					if err != nil {
						return nil, err
					}
					answer, err := client.MemberUpdate(ctx, id, urls)
					if err != nil {
						return nil, err
					}
					return answer.Members, nil
				},
			})
		},
	}
	cmd.Flags().StringSliceVar(&texts, "peer-urls", nil, "URLs at which other members reach it")
	return c.addForceTo(c.addTo(cmd))
}
