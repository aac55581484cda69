package ctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func newMember(s Streams) *cobra.Command {
	return nouns("member", "List and change the members of the cluster",
		newMemberList(s), newMemberAdd(s), newMemberRemove(s), newMemberUpdate(s), newMemberPromote(s))
}

type memberLine struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	PeerURLs   []string `json:"peer_urls"`
	ClientURLs []string `json:"client_urls"`
	Learner    bool     `json:"learner"`
}

// printMembers ends every member command: after a change the new list is the answer.
func (c *connection) printMembers(members []*pb.Member) error {
	if c.json() {
		lines := []memberLine{}
		for _, m := range members {
			lines = append(lines, memberLine{hexID(m.ID), m.Name, m.PeerURLs, m.ClientURLs, m.IsLearner})
		}
		return printJSON(c.streams.Out, lines)
	}
	t := &table{}
	t.add("ID", "NAME", "KIND", "PEER URLS", "CLIENT URLS")
	for _, m := range members {
		kind, name := "voter", m.Name
		if m.IsLearner {
			kind = "learner"
		}
		if name == "" {
			name = "(not started)"
		}
		t.add(hexID(m.ID), name, kind, strings.Join(m.PeerURLs, ","), strings.Join(m.ClientURLs, ","))
	}
	t.print(c.streams.Out)
	return nil
}

// memberCommand makes a command whose answer is the list of members.
func memberCommand(s Streams, use, short string, args cobra.PositionalArgs,
	request func(context.Context, *clientv3.Client, []string) ([]*pb.Member, error)) *cobra.Command {
	c := newConnection(s)
	return c.addTo(&cobra.Command{Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, words []string) error {
			return c.do(cmd.Context(), func(ctx context.Context, client *clientv3.Client) error {
				members, err := request(ctx, client, words)
				if err != nil {
					return err
				}
				return c.printMembers(members)
			})
		}})
}

func newMemberList(s Streams) *cobra.Command {
	return memberCommand(s, "list", "List the members", cobra.NoArgs,
		func(ctx context.Context, client *clientv3.Client, _ []string) ([]*pb.Member, error) {
			answer, err := client.MemberList(ctx)
			if err != nil {
				return nil, err
			}
			return answer.Members, nil
		})
}

func newMemberAdd(s Streams) *cobra.Command {
	var learner bool
	cmd := memberCommand(s, "add PEER-URL…", "Add a member that will be reached at these peer URLs",
		cobra.MinimumNArgs(1),
		func(ctx context.Context, client *clientv3.Client, words []string) ([]*pb.Member, error) {
			add := client.MemberAdd
			if learner {
				add = client.MemberAddAsLearner
			}
			answer, err := add(ctx, words)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(s.Err, "added %s; start it with --initial-cluster-state existing and --initial-cluster %s\n",
				hexID(answer.Member.ID), initialCluster(answer))
			return answer.Members, nil
		})
	cmd.Flags().BoolVar(&learner, "learner", false, "add it as a learner, which does not vote")
	return cmd
}

// initialCluster is what the new member must be started with; it has yet to be given a name.
func initialCluster(answer *clientv3.MemberAddResponse) string {
	var parts []string
	for _, m := range answer.Members {
		name := m.Name
		if m.ID == answer.Member.ID {
			name = "NAME"
		}
		for _, u := range m.PeerURLs {
			parts = append(parts, name+"="+u)
		}
	}
	return strings.Join(parts, ",")
}

func newMemberRemove(s Streams) *cobra.Command {
	return memberCommand(s, "remove MEMBER", "Remove a member, given by its id or its name", cobra.ExactArgs(1),
		func(ctx context.Context, client *clientv3.Client, words []string) ([]*pb.Member, error) {
			id, err := memberID(ctx, client, words[0])
			if err != nil {
				return nil, err
			}
			answer, err := client.MemberRemove(ctx, id)
			if err != nil {
				return nil, err
			}
			return answer.Members, nil
		})
}

func newMemberUpdate(s Streams) *cobra.Command {
	return memberCommand(s, "update MEMBER PEER-URL…", "Change the peer URLs of a member", cobra.MinimumNArgs(2),
		func(ctx context.Context, client *clientv3.Client, words []string) ([]*pb.Member, error) {
			id, err := memberID(ctx, client, words[0])
			if err != nil {
				return nil, err
			}
			answer, err := client.MemberUpdate(ctx, id, words[1:])
			if err != nil {
				return nil, err
			}
			return answer.Members, nil
		})
}

func newMemberPromote(s Streams) *cobra.Command {
	return memberCommand(s, "promote MEMBER", "Let a learner vote", cobra.ExactArgs(1),
		func(ctx context.Context, client *clientv3.Client, words []string) ([]*pb.Member, error) {
			id, err := memberID(ctx, client, words[0])
			if err != nil {
				return nil, err
			}
			answer, err := client.MemberPromote(ctx, id)
			if err != nil {
				return nil, err
			}
			return answer.Members, nil
		})
}

// memberID finds a member by its name, which is how people call it, or by its id.
func memberID(ctx context.Context, client *clientv3.Client, word string) (uint64, error) {
	list, err := client.MemberList(ctx)
	if err != nil {
		return 0, err
	}
	var byName []uint64
	var known []string
	for _, m := range list.Members {
		if hexID(m.ID) == strings.ToLower(word) {
			return m.ID, nil
		}
		if m.Name == word {
			byName = append(byName, m.ID)
		}
		known = append(known, hexID(m.ID)+" ("+m.Name+")")
	}
	switch len(byName) {
	case 1:
		return byName[0], nil
	case 0:
		return 0, &failure{StatusRefused, fmt.Errorf("no member is called %q; there are %s", word,
			strings.Join(known, ", "))}
	default:
		return 0, &failure{StatusRefused, fmt.Errorf("%d members are called %q; give the id", len(byName), word)}
	}
}
