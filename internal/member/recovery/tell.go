package recovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

// Told is what an operator says of where members are, to a stopped one.
type Told struct {
	All  []datadir.Address // as it is to be
	News []datadir.Address // of these, what is said now

	shared []sharedURL
}

// sharedURL is a URL at which a member is told to be, and at which the configuration of the directory, or an earlier word, has
// another one. The other member may have been removed from the cluster since.
type sharedURL struct {
	url         string
	told, other consensus.MemberID
}

// Place is a URL at which a member is told to be.
type Place struct {
	Member consensus.MemberID
	URL    string
}

// Tell takes the URLs that an operator says for members of configurations that may be in force, see Known. Those of this member
// itself are looked at and not kept, so that one line serves all. Where every such configuration has a member there is nothing
// to tell. A member without URLs takes back what was told of it. No two members may be at one URL; one may be told to be where
// another one was if the operator says where that one is now, or if it is found there: see Look.
func (s *Survivor) Tell(places map[consensus.MemberID][]string) (Told, error) {
	t := Told{All: slices.Clone(s.Told)}
	places = t.takeBack(places)
	known := s.withUnknown(places)
	for i := range known { // in one order
		if urls := places[known[i].ID]; urls != nil && known[i].ID != s.Identity.Member {
			t.tell(s, &known[i], urls)
		}
	}
	owners, claims := map[string]consensus.MemberID{}, map[consensus.MemberID]claim{}
	for i := range known {
		m := &known[i]
		urls := m.PeerURLs
		mine := claim{said: places[m.ID] != nil, moves: places[m.ID] != nil && !membership.SameURLs(places[m.ID], m.PeerURLs)}
		if at := slices.IndexFunc(t.All, func(a datadir.Address) bool { return a.Member == m.ID }); at >= 0 {
			urls, mine.word = t.All[at].URLs, true
		} else if mine.said {
			urls = places[m.ID]
		}
		claims[m.ID] = mine
		for _, url := range urls {
			other, taken := owners[url]
			switch now, before := mine.against(claims[other]), claims[other].against(mine); {
			case !taken:
				owners[url] = m.ID
			case now && before:
				return Told{}, s.bothAt(other, m.ID, url)
			case now:
				t.share(s, url, m.ID, other)
			case before:
				t.share(s, url, other, m.ID)
			} // else it was taken when it was said
		}
	}
	return t, nil
}

// withUnknown returns the members that are Known, and those of which an operator says, or has said, where they are and that no
// configuration that may be in force here has, and that were not removed.
func (s *Survivor) withUnknown(places map[consensus.MemberID][]string) []consensus.Member {
	known := s.Known()
	ids := slices.Collect(maps.Keys(places))
	for i := range s.Told {
		ids = append(ids, s.Told[i].Member)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if !s.knows(id) && !s.removed(id) {
			known = append(known, consensus.Member{ID: id})
		}
	}
	return known
}

// takeBack drops earlier words about the members of which nothing is said but their names, and leaves the other places.
func (t *Told) takeBack(places map[consensus.MemberID][]string) (left map[consensus.MemberID][]string) {
	t.All = slices.DeleteFunc(t.All, func(a datadir.Address) bool {
		urls, said := places[a.Member]
		return said && len(urls) == 0
	})
	left = maps.Clone(places)
	maps.DeleteFunc(left, func(_ consensus.MemberID, urls []string) bool { return len(urls) == 0 })
	return left
}

// claim is what speaks for the URLs of a member.
type claim struct {
	said  bool // the operator, now
	moves bool // and not what the configuration says already
	word  bool // of the operator's, now or before
}

// against reports whether a member is told to be where another one is. To repeat what a configuration says of a member puts it
// in the place of no member that only another configuration has there.
func (c claim) against(other claim) bool { return c.moves || c.said && (other.word || other.said) }

// share notes that a member is told to be where the configuration, or an earlier word, has another one. Of the member itself
// nothing is kept.
func (t *Told) share(s *Survivor, url string, told, other consensus.MemberID) {
	if told != s.Identity.Member {
		t.shared = append(t.shared, sharedURL{url, told, other})
	}
}

func (s *Survivor) bothAt(a, b consensus.MemberID, url string) error {
	return fmt.Errorf("%s and %s cannot both be at %s: correct the URL, or also give the new URL of the member that was "+
		"there; nothing was changed", s.NameOf(a), s.NameOf(b), url)
}

func (t *Told) tell(s *Survivor, known *consensus.Member, urls []string) {
	row := datadir.Address{
		Member: known.ID, URLs: urls, Config: s.ConfigID, Instead: known.PeerURLs, Unknown: !s.knows(known.ID),
	}
	t.All = slices.DeleteFunc(t.All, func(a datadir.Address) bool { return a.Member == known.ID })
	if row.Unknown || !s.alwaysAt(known.ID, urls) {
		t.All = append(t.All, row)
		t.News = append(t.News, row)
	}
}

// alwaysAt reports whether a member is at these URLs in every configuration that may be in force here. The last one in the
// log is not, under protocol apply, before it has committed, and a later leader may take it back.
func (s *Survivor) alwaysAt(id consensus.MemberID, urls []string) bool {
	at := func(config *consensus.Config) bool {
		m, known := config.Member(id)
		return !known || slices.Equal(m.PeerURLs, urls)
	}
	return at(&s.Config) && at(&s.base.Config) &&
		!slices.ContainsFunc(s.changes, func(c configChange) bool { return !at(&c.Config) })
}

// Look asks at the new URLs who is there, and says it in words for each. The usual typo, a client port for a peer port,
// must not be taken. A URL at which another member was is taken only if the one that is told to be there answers: else the
// operator has to say where that other one is, or to start the one that is there now first.
func (t *Told) Look(ctx context.Context, s *Survivor, find Finder) (map[Place]string, error) {
	words := map[Place]string{}
	for _, both := range t.shared {
		presence, err := seek(ctx, find, both.told, both.url)
		if err := s.wrong(Place{both.told, both.url}, presence, err); err != nil {
			return nil, err
		}
		if presence != transport.Present {
			return nil, s.notThere(&both, presence, err)
		}
		t.All = slices.DeleteFunc(t.All, func(a datadir.Address) bool { // the other one has left the place that was told before
			return a.Member == both.other && slices.Contains(a.URLs, both.url)
		})
	}
	for i := range t.News {
		answers, unsure := false, error(nil)
		for _, url := range t.News[i].URLs {
			place := Place{t.News[i].Member, url}
			presence, err := seek(ctx, find, place.Member, url)
			if err := s.wrong(place, presence, err); err != nil {
				return nil, err
			}
			switch presence {
			case transport.Present:
				words[place] = "answers"
				answers = true
			case transport.Unsure:
				words[place], unsure = fmt.Sprintf("not known: %v", err), err
			default:
				words[place] = "does not answer yet"
			}
		}
		if t.News[i].Unknown && !answers {
			return nil, unknown(&t.News[i], unsure)
		}
	}
	return words, nil
}

// wrong returns an error if something else than the member answers at a URL.
func (s *Survivor) wrong(p Place, presence transport.Presence, err error) error {
	name := s.NameOf(p.Member)
	switch presence {
	case transport.Another:
		return fmt.Errorf("%s=%s: another process answers there, which is not %s of this cluster; nothing was changed", name,
			p.URL, name)
	case transport.Empty:
		return fmt.Errorf("%s=%s: %s; it is not %s, whose data are elsewhere or lost; nothing was changed", name, p.URL,
			identity.EmptyAt(name, p.URL), name)
	case transport.NoPeerPort:
		return fmt.Errorf("%s=%s is a wrong URL: %w; nothing was changed", name, p.URL, err)
	}
	return nil
}

// unknown is the error for a member that no configuration here has, and that was not found where it is told to be. If it is
// not known whether it is there, why says so.
func unknown(a *datadir.Address, why error) error {
	urls := strings.Join(a.URLs, ",")
	if why != nil {
		return fmt.Errorf("%v=%s: the data here have no member %v, so it is only taken where it answers, and whether it "+
			"does is not known: %w; nothing was changed", a.Member, urls, a.Member, why)
	}
	return fmt.Errorf("%v=%s: the data here have no member %v, so it is only taken where it answers, and it does not. If "+
		"`quorate member list` at a member that serves shows it, start it first; nothing was changed", a.Member, urls, a.Member)
}

// notThere is the error for a URL of another member at which the one that is told to be there was not found.
func (s *Survivor) notThere(both *sharedURL, presence transport.Presence, err error) error {
	told, other := s.NameOf(both.told), s.NameOf(both.other)
	switch {
	case presence == transport.Unsure:
		return fmt.Errorf("%s=%s: that is the URL of %s, and whether %s is there now is not known: %w; nothing was changed",
			told, both.url, other, told, err)
	case both.other == s.Identity.Member:
		return fmt.Errorf("%s=%s: that is the URL of %s, this member, in its configuration. Also give the URL at which %s "+
			"will be started: %s=URL; nothing was changed", told, both.url, other, other, other)
	}
	return fmt.Errorf("%s=%s: that is the URL of %s, and %s does not answer there. If %s has moved, give its new URL, too: "+
		"%s=URL. If %s was removed from the cluster, start %s there, and repeat this command while it runs; nothing was "+
		"changed", told, both.url, other, told, other, other, other, told)
}

func seek(ctx context.Context, find Finder, id consensus.MemberID, url string) (transport.Presence, error) {
	ctx, cancel := context.WithTimeout(ctx, voterTimeout)
	defer cancel()
	return find(ctx, id, url)
}
