package member

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/wording"
)

const applyLong = `Make the members of the cluster what a file says, in one job whose voters change in one atomic step.
Members are told apart by their names: who is missing is added, URLs are updated, learners are promoted and voters demoted.
Members that are not listed are removed only with prune: true in the file or --prune. A file of another cluster is refused.

    cluster: cdf818194e3a8c32   # as ` + "`member list`" + ` tells it; --yes needs it
    members:
      - name: m1
        peer_urls: [http://10.0.4.1:2380]
      - name: m5
        peer_urls: [http://10.0.4.10:2380]
        learner: true
        cordoned: true  # leaves leadership to others; without this line a member's mark stays as it is
    prune: false        # the default
    protocol: auto      # the default

A FILE called - is the standard input; then --yes is needed.`

func newApply(s command.Streams) *cobra.Command {
	c := newChanger(s)
	var prune bool
	cmd := &cobra.Command{
		Use:     "apply FILE",
		Short:   "Make the members what a file says",
		Long:    applyLong,
		Example: "  quorate member apply cluster.yaml --dry-run\n  quorate member apply cluster.yaml --yes",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			if words[0] == "-" {
				c.Streams.Attended = false // the input is used up
			}
			raw, err := readFile(c.Streams.In, words[0])
			if err != nil {
				return err
			}
			f, err := parseClusterFile(words[0], raw)
			if err != nil {
				return err
			}
			f.Prune = f.Prune || prune
			if f.Protocol != "" && !cmd.Flags().Changed("protocol") {
				c.protocol = f.Protocol
			}
			return c.run(cmd.Context(), change{
				spec: func(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
					spec, kept, err := f.compare(cluster)
					if err == nil && f.Cluster == "" && c.yes && !c.dryRun && !wording.AsksNothing(spec) {
						return nil, f.nameless(words[0], cluster)
					}
					for _, name := range kept {
						fmt.Fprintf(c.Streams.Err, "%s is not in %s and stays; --prune removes it\n", name, words[0])
					}
					return spec, err
				},
			})
		},
	}
	cmd.Flags().BoolVar(&prune, "prune", false, "remove members that the file does not list")
	return c.addForceTo(c.addProtocolTo(c.addTo(cmd)))
}

func readFile(in io.Reader, path string) ([]byte, error) {
	if path == "-" {
		raw, err := io.ReadAll(in)
		if err != nil {
			return nil, command.Refused(fmt.Errorf("read the standard input: %w", err))
		}
		return raw, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		return nil, command.Usagef("%s cannot be read: %w", path, err)
	}
	return raw, nil
}

// compare tells what is to be changed, and which members are not listed and stay all the same.
func (f *clusterFile) compare(cluster *quoratepb.Cluster) (spec *quoratepb.ChangeSpec, kept []string, err error) {
	if f.Cluster != "" && f.Cluster != command.HexID(cluster.ClusterId) {
		return nil, nil, command.Refused(fmt.Errorf("the file is about cluster %s, and this is cluster %s (%s): "+
			"nothing was changed; correct --endpoints or the file", f.Cluster,
			command.HexID(cluster.ClusterId), memberNames(cluster)))
	}
	if cluster.Joint {
		return nil, nil, command.Refused(errors.New("a change of the members is under way: try again when it is " +
			"over; see `quorate member jobs`"))
	}
	spec = &quoratepb.ChangeSpec{Kind: "change"}
	listed := map[uint64]bool{}
	for _, want := range f.Members {
		is, err := f.find(cluster, want)
		if err != nil {
			return nil, nil, err
		}
		if is == nil {
			spec.Add = append(spec.Add, &quoratepb.Newcomer{Name: want.Name, PeerUrls: want.PeerURLs, Learner: want.Learner,
				Cordoned: want.Cordoned != nil && *want.Cordoned})
			continue
		}
		listed[is.Id] = true
		if !slices.Equal(sorted(is.PeerUrls), sorted(want.PeerURLs)) {
			spec.Update = append(spec.Update, &quoratepb.NewURLs{Id: is.Id, PeerUrls: want.PeerURLs})
		}
		switch {
		case want.Cordoned == nil || *want.Cordoned == is.Cordoned:
		case *want.Cordoned:
			spec.Cordon = append(spec.Cordon, is.Id)
		default:
			spec.Uncordon = append(spec.Uncordon, is.Id)
		}
		learns := is.Role == quoratepb.Role_ROLE_LEARNER
		switch {
		case want.Learner && !learns:
			spec.Demote = append(spec.Demote, is.Id)
		case !want.Learner && learns:
			spec.Promote = append(spec.Promote, is.Id)
		}
	}
	for _, m := range cluster.Members {
		switch {
		case listed[m.Id]:
		case f.Prune:
			spec.Remove = append(spec.Remove, m.Id)
		default:
			kept = append(kept, progress.Name(m))
		}
	}
	return spec, kept, nil
}

// find returns the member that a line of the file means, nil if there is none: the one of this name, or one that has yet
// to tell its name and is expected at these URLs.
func (f *clusterFile) find(cluster *quoratepb.Cluster, want fileMember) (*quoratepb.Member, error) {
	var found *quoratepb.Member
	for _, m := range cluster.Members {
		nameless := m.Name == "" && slices.Equal(sorted(m.PeerUrls), sorted(want.PeerURLs))
		if m.Name != want.Name && !nameless {
			continue
		}
		if found != nil {
			return nil, command.Refused(fmt.Errorf("%s and %s are both called %s: remove one by its id first",
				command.HexID(found.Id), command.HexID(m.Id), want.Name))
		}
		found = m
	}
	return found, nil
}

// nameless refuses a file that does not say whose it is, where no operator is asked.
func (f *clusterFile) nameless(path string, cluster *quoratepb.Cluster) error {
	return command.Refused(fmt.Errorf("%s does not say which cluster it is about, and --yes asks nobody: if it is "+
		"this one (%s), add `cluster: %s` to the file", path, memberNames(cluster), command.HexID(cluster.ClusterId)))
}

// memberNames lists the members, by which people know a cluster.
func memberNames(cluster *quoratepb.Cluster) string {
	var names []string
	for _, m := range cluster.Members {
		names = append(names, progress.Name(m))
	}
	return strings.Join(names, ", ")
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }
