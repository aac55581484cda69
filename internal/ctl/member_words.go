package ctl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/config"
)

// findMember finds a member by its name, which is how people call it, or by its id: in hexadecimal as the tables write
// it, or in decimal as JSON does.
func findMember(cluster *quoratepb.Cluster, word string) (*quoratepb.Member, error) {
	var found, known []string
	var member *quoratepb.Member
	for _, m := range cluster.Members {
		known = append(known, hexID(m.Id)+" ("+m.Name+")")
		if hexID(m.Id) == strings.ToLower(word) || m.Name == word || strconv.FormatUint(m.Id, 10) == word {
			found = append(found, hexID(m.Id)+" ("+m.Name+")")
			member = m
		}
	}
	switch len(found) {
	case 1:
		return member, nil
	case 0:
		return nil, &failure{StatusRefused, fmt.Errorf("no member is called %q; there are %s", word,
			strings.Join(known, ", "))}
	default:
		return nil, &failure{StatusRefused, fmt.Errorf("%q may be %s; give the full id of the one you mean", word,
			strings.Join(found, " or "))}
	}
}

// findMembers finds several, each once.
func findMembers(cluster *quoratepb.Cluster, words []string) ([]uint64, error) {
	var ids []uint64
	for _, word := range words {
		m, err := findMember(cluster, word)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, m.Id) {
			ids = append(ids, m.Id)
		}
	}
	return ids, nil
}

// assignment is NAME=URL[,URL].
type assignment struct {
	name string
	urls []string
}

func parseAssignments(flag string, texts []string) ([]assignment, error) {
	var out []assignment
	for _, text := range texts {
		name, list, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, usageError("%s %s: write NAME=URL[,URL]", flag, text)
		}
		urls, err := parsePeerURLs(flag, strings.Split(list, ","))
		if err != nil {
			return nil, err
		}
		out = append(out, assignment{name, urls})
	}
	return out, nil
}

// parsePeerURLs checks URLs as the server will, and sorts them as it does.
func parsePeerURLs(from string, texts []string) ([]string, error) {
	urls, err := config.ParseURLs(strings.Join(texts, ","))
	if err != nil {
		return nil, usageError("%s: %w", from, err)
	}
	if len(urls) == 0 {
		return nil, usageError("%s: a member needs a peer URL, such as http://10.0.4.9:2380", from)
	}
	var out []string
	for _, u := range urls {
		out = append(out, u.String())
	}
	return slices.Compact(out), nil
}
