package member

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v2"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
)

// clusterFile says what the members of a cluster should be.
type clusterFile struct {
	Cluster  string       `yaml:"cluster"` // id of the cluster that the file is about; may be empty
	Members  []fileMember `yaml:"members"`
	Prune    bool         `yaml:"prune"`    // remove members that are not listed
	Protocol string       `yaml:"protocol"` // auto if empty
}

// fileMember is one of them. Members are told apart by their names.
type fileMember struct {
	Name     string   `yaml:"name"`
	PeerURLs []string `yaml:"peer_urls"`
	Learner  bool     `yaml:"learner"`
	Cordoned *bool    `yaml:"cordoned"` // nil: as it is
}

var fileKeys = []string{"cluster", "members", "prune", "protocol", "name", "peer_urls", "learner", "cordoned"}

// parseClusterFile reads a file and tells all of its faults at once.
func parseClusterFile(path string, raw []byte) (*clusterFile, error) {
	var f clusterFile
	if err := yaml.UnmarshalStrict(raw, &f); err != nil {
		return nil, command.Usagef("%w", errors.Join(yamlFaults(path, err)...))
	}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(path+": "+format, args...))
	}
	if len(f.Members) == 0 {
		fault("lists no members")
	}
	if err := consensus.RefuseExperiment(f.Protocol); err != nil {
		fault("%v", err)
	} else if _, known := consensus.ParseProtocol(f.Protocol); !known {
		fault("protocol %q is unknown: choose %s", f.Protocol, command.Alternatives(consensus.ProtocolNames()))
	}
	var names, taken []string
	voters := 0
	for i := range f.Members {
		m := &f.Members[i]
		who := fmt.Sprintf("member %d (%s)", i+1, m.Name)
		switch {
		case m.Name == "":
			who = fmt.Sprintf("member %d", i+1)
			fault("%s has no name", who)
		case slices.Contains(names, m.Name):
			fault("%s is listed twice", who)
		}
		names = append(names, m.Name)
		urls, err := parsePeerURLs("peer_urls", m.PeerURLs)
		if err != nil {
			fault("%s: %w", who, err)
			continue
		}
		for _, u := range urls {
			if slices.Contains(taken, u) {
				fault("%s has the URL %s of another member", who, u)
			}
		}
		taken, m.PeerURLs = append(taken, urls...), urls
		if !m.Learner {
			voters++
		}
	}
	if voters == 0 && len(faults) == 0 {
		fault("lists only learners: somebody must vote")
	}
	if len(faults) > 0 {
		return nil, command.Usagef("%w", errors.Join(faults...))
	}
	return &f, nil
}

// Errors of the decoder: for a key that is given twice, for one that it does not know, and for values that do not fit.
var (
	repeated   = regexp.MustCompile(`^line (\d+): field (\S+) already set in type \S+$`)
	unknownKey = regexp.MustCompile(`^line (\d+): field (\S+) not found in type \S+$`)
	wrongValue = regexp.MustCompile("^line (\\d+): cannot unmarshal (?s:(.*)) into (\\S+)$")
)

// yamlFaults turns the decoder's errors into faults of the file, with their lines.
func yamlFaults(path string, err error) []error {
	several, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		return []error{fmt.Errorf("%s: %s", path, text)}
	}
	var faults []error
	for _, text := range several.Errors {
		if m := unknownKey.FindStringSubmatch(text); m != nil {
			hint := ""
			if near := config.Nearest(m[2], fileKeys); near != "" {
				hint = "; did you mean " + near + "?"
			}
			faults = append(faults, fmt.Errorf("%s: line %s: unknown key %s%s", path, m[1], m[2], hint))
			continue
		}
		if m := repeated.FindStringSubmatch(text); m != nil {
			faults = append(faults, fmt.Errorf("%s: line %s: %s is given twice", path, m[1], m[2]))
			continue
		}
		if m := wrongValue.FindStringSubmatch(text); m != nil {
			faults = append(faults, fmt.Errorf("%s: line %s: must be %s", path, m[1], kindText(m[3])))
			continue
		}
		faults = append(faults, fmt.Errorf("%s: %s", path, text))
	}
	return faults
}

// kindText says which value a key takes, for the kind that the decoder names.
func kindText(kind string) string {
	switch {
	case strings.HasSuffix(kind, "bool"):
		return "true or false"
	case kind == "string":
		return "a text"
	case kind == "[]string":
		return "a list of texts"
	case strings.HasPrefix(kind, "[]"):
		return "a list of members"
	}
	return "a map of settings"
}
