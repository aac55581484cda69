package wording

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
)

// ErrUnknownMember is a word that names no member.
var ErrUnknownMember = errors.New("no member is called")

// FindMember finds a member by its name, which is how people call it, or by its id: in hexadecimal as the tables write
// it, or in decimal as JSON does. It returns ErrUnknownMember if there is none, and another error if there are several.
func FindMember(cluster *quoratepb.Cluster, word string) (*quoratepb.Member, error) {
	var found, known []string
	var member *quoratepb.Member
	for _, m := range cluster.GetMembers() {
		id := consensus.MemberID(m.Id).String()
		known = append(known, id+" ("+m.Name+")")
		if id == strings.ToLower(word) || m.Name == word || strconv.FormatUint(m.Id, 10) == word {
			found = append(found, id+" ("+m.Name+")")
			member = m
		}
	}
	switch len(found) {
	case 1:
		return member, nil
	case 0:
		return nil, fmt.Errorf("%w %q; there are %s", ErrUnknownMember, word, strings.Join(known, ", "))
	default:
		return nil, fmt.Errorf("%q may be %s; give the full id of the one you mean", word, strings.Join(found, " or "))
	}
}

// FindMembers finds several, each once.
func FindMembers(cluster *quoratepb.Cluster, words []string) ([]uint64, error) {
	var ids []uint64
	for _, word := range words {
		m, err := FindMember(cluster, word)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, m.Id) {
			ids = append(ids, m.Id)
		}
	}
	return ids, nil
}

// MemberURLs is MEMBER=URL[,URL], or a newcomer's NAME in the place of MEMBER.
type MemberURLs struct {
	Name string
	URLs []string // as PeerURLs returns them
}

// ParseMemberURLs reads such texts. An error says from where they are.
func ParseMemberURLs(from string, texts []string) ([]MemberURLs, error) {
	var out []MemberURLs
	for _, text := range texts {
		name, list, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("%s %s: write NAME=URL[,URL]", from, text)
		}
		urls, err := PeerURLs(from, []string{list})
		if err != nil {
			return nil, err
		}
		out = append(out, MemberURLs{name, urls})
	}
	return out, nil
}

// PeerURLs checks URLs as the server will, and sorts them as it does. Each text may be a list with commas. An error says from
// where they are.
func PeerURLs(from string, texts []string) ([]string, error) {
	urls, err := config.ParseURLs(strings.Join(texts, ","))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("%s: a member needs a peer URL, such as http://10.0.4.9:2380", from)
	}
	var out []string
	for _, u := range urls {
		out = append(out, u.String())
	}
	return slices.Compact(out), nil
}
