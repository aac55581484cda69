package member

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

const scaleLong = `Bring the members of a set, such as those of a StatefulSet, to a number. With NAME db and --to 3 the
members are db-0, db-1 and db-2.

Give it before the pods change: pods that go take no member out of the cluster, and members that are only gone still
count, until too many of them are a majority. Members with the numbers N and above are removed in one atomic step, and
the command waits for its end. With --peer-urls members that are missing are added; the command does not wait until
their processes start, which need no join token then. It does nothing if the members are as asked, so that it may be
repeated.`

// set is what such a command asks for.
type set struct {
	name     string
	to       int
	peerURLs string // of a member, with {} in the place of its name; empty: add none
}

func newScale(s command.Streams) *cobra.Command {
	c := newChanger(s)
	var of set
	cmd := &cobra.Command{
		Use:   "scale NAME --to N",
		Short: "Add or remove members NAME-0, NAME-1 and so on, before a StatefulSet is scaled",
		Long:  scaleLong,
		Example: "  quorate member scale db --to 3\n  kubectl scale statefulset db --replicas 3\n" +
			"  quorate member scale db --to 5 --peer-urls 'http://{}.db-headless.prod.svc.cluster.local:2380'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			of.name = words[0]
			if err := of.refuse(); err != nil {
				return err
			}
			detach := c.detach
			for again := true; again; {
				err := c.run(cmd.Context(), change{spec: func(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
					spec, missing, err := of.changes(cluster)
					again = missing && !c.dryRun
					c.detach = detach || len(spec.GetAdd()) > 0
					return spec, refused(err)
				}})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&of.to, "to", 0, "how many members the set is to have")
	cmd.Flags().StringVar(&of.peerURLs, "peer-urls", "", "add members that are missing, at these URLs, with {} in the "+
		"place of the member's name")
	return c.addJoinTo(c.addProtocolTo(c.addTo(cmd)))
}

// mostInSet bounds a number that is mistyped.
const mostInSet = 99

func (s *set) refuse() error {
	switch {
	case s.to < 1 || s.to > mostInSet:
		return command.Usagef("say how many members there are to be: --to N, from 1 to %d", mostInSet)
	case s.peerURLs != "" && !strings.Contains(s.peerURLs, "{}"):
		return command.Usagef("--peer-urls %s would give all members one URL: write {} in the place of the name", s.peerURLs)
	case s.peerURLs != "":
		_, err := s.numbered(0)
		return err
	}
	return nil
}

// changes removes the members from the number on that is asked for. If there are none it adds those that are missing; else
// missing tells whether there are any. A set without any member is an error: its name is mistyped.
func (s *set) changes(cluster *quoratepb.Cluster) (spec *quoratepb.ChangeSpec, missing bool, err error) {
	spec = &quoratepb.ChangeSpec{Kind: "change"}
	var numbers []int
	var others, reached []string
	for _, m := range cluster.GetMembers() {
		number, belongs := numberIn(s.name, m.GetName())
		switch {
		case !belongs:
			others = append(others, m.GetName())
			continue
		case number >= s.to:
			spec.Remove = append(spec.Remove, m.GetId())
		}
		numbers = append(numbers, number)
		reached = append(reached, m.GetPeerUrls()...)
	}
	if len(numbers) == 0 {
		return nil, false, fmt.Errorf("%w %s-0, %[2]s-1 and so on; there are %s", wording.ErrUnknownMember, s.name,
			strings.Join(others, ", "))
	}
	for number := range s.to {
		if s.peerURLs == "" || slices.Contains(numbers, number) {
			continue
		}
		n, err := s.numbered(number)
		if err != nil {
			return nil, false, err
		}
		spec.Add = append(spec.Add, n)
	}
	if len(spec.Add) > 0 {
		if err := s.otherScheme(reached); err != nil {
			return nil, false, err
		}
	}
	if len(spec.Remove) > 0 && len(spec.Add) > 0 {
		spec.Add, missing = nil, true
	}
	return spec, missing, nil
}

// otherScheme refuses to add members at URLs of another scheme than all members of the set have: their processes, which are
// started alike, would be at other URLs than the cluster looks for them.
func (s *set) otherScheme(reached []string) error {
	scheme, rest, _ := strings.Cut(s.peerURLs, "://")
	for _, u := range reached {
		if has, _, _ := strings.Cut(u, "://"); has == scheme {
			return nil
		}
	}
	if len(reached) == 0 {
		return nil
	}
	has, _, _ := strings.Cut(reached[0], "://")
	return fmt.Errorf("--peer-urls %s: the members of %s that are there are reached by %s, and nobody would find others by "+
		"%s: write %s://%s", s.peerURLs, s.name, has, scheme, has, rest)
}

func (s *set) numbered(number int) (*quoratepb.Newcomer, error) {
	name := s.name + "-" + strconv.Itoa(number)
	urls, err := parsePeerURLs("--peer-urls", []string{strings.ReplaceAll(s.peerURLs, "{}", name)})
	return &quoratepb.Newcomer{Name: name, PeerUrls: urls}, err
}

// numberIn reads the number of a member of a set: 3 of db-3.
func numberIn(name, member string) (number int, belongs bool) {
	digits, belongs := strings.CutPrefix(member, name+"-")
	number, err := strconv.Atoi(digits)
	return number, belongs && err == nil && number >= 0 && strconv.Itoa(number) == digits
}
