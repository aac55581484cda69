package place

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Allowed are the places that an operator lets a process use for others. None is allowed by none.
//
// An entry allows the directory, or the bucket and prefix of its server, that it names, and all below. Files and region are
// those of the entry: a caller need not name them, and may name no others.
type Allowed []*Place

// mostEntries bounds Allowed.
const mostEntries = 64

// ParseAllowed reads entries, which are URLs as Parse takes them.
func ParseAllowed(entries []string) (Allowed, error) {
	if len(entries) > mostEntries {
		return nil, fmt.Errorf("%d places are allowed, and at most %d can be", len(entries), mostEntries)
	}
	var a Allowed
	for i, entry := range entries {
		p, err := Parse(entry)
		switch {
		case err != nil:
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		case p.Directory != "" && filepath.Dir(p.Directory) == p.Directory:
			return nil, fmt.Errorf("entry %d: it would allow every directory of this machine: name the one for backups",
				i+1)
		}
		a = append(a, p)
	}
	return a, nil
}

// Permit returns a place as the entry that allows it wants it to be used. The error is an objects.ErrNotAllowed. No file system
// and no network is asked: Open looks where links lead.
func (a Allowed) Permit(p *Place) (*Place, error) {
	var reasons []string
	for _, entry := range a {
		permitted, why := entry.permit(p)
		if permitted != nil {
			return permitted, nil
		}
		if why != "" {
			reasons = append(reasons, why)
		}
	}
	if len(reasons) > 0 {
		return nil, fmt.Errorf("%w: %s", objects.ErrNotAllowed, reasons[0])
	}
	if len(a) == 0 {
		return nil, fmt.Errorf("%w: its --backup-places is not set. Start each member that may ship there with "+
			"--backup-places %s", objects.ErrNotAllowed, p.suggested())
	}
	return nil, fmt.Errorf("%w: its --backup-places allows %s. Correct the URL; or add an entry to the --backup-places of "+
		"each member that may ship there, beside what it has: %s", objects.ErrNotAllowed, a.shown(), p.suggested())
}

// suggested is the entry that would allow p, as a shell reads it, and what to give `quorate backup start`, if p names files: a
// member takes those of its own entry.
func (p *Place) suggested() string {
	entry := typed.Word(strings.ReplaceAll(p.String(), ",", "%2C")) // a comma ends an entry
	if p.CA == "" && p.Credentials == "" {
		return entry
	}
	return fmt.Sprintf("%s, where the files are those of the member's machine, and give `quorate backup start` the URL "+
		"without them: %s", entry, typed.Word(p.bare()))
}

// shown lists what is allowed, without names of files.
func (a Allowed) shown() string {
	var all []string
	for _, entry := range a {
		all = append(all, entry.bare())
	}
	return strings.Join(all, ", ")
}

// bare returns the URL without names of files.
func (p *Place) bare() string {
	return (&Place{Directory: p.Directory, Endpoint: p.Endpoint, Bucket: p.Bucket, Prefix: p.Prefix, Region: p.Region,
		PathStyle: p.Endpoint != ""}).String()
}

// permit returns p as this entry allows it; nil: it does not, and why, if it is for what p names beside the place.
func (entry *Place) permit(p *Place) (_ *Place, why string) {
	if entry.Directory != "" {
		if p.Directory == "" || !within(p.Directory, entry.Directory) {
			return nil, ""
		}
		return &Place{Directory: p.Directory, within: entry.Directory}, ""
	}
	if p.Directory != "" || p.Bucket != entry.Bucket || server(p.Endpoint) != server(entry.Endpoint) ||
		!strings.HasPrefix(p.Prefix, entry.Prefix) {
		return nil, ""
	}
	for _, named := range []struct{ parameter, is, allowed string }{
		{paramCA, p.CA, entry.CA}, {paramCredentials, p.Credentials, entry.Credentials},
		{paramProfile, p.Profile, entry.Profile}, {paramRegion, p.Region, entry.Region},
	} {
		if named.is != "" && named.is != named.allowed {
			return nil, "its --backup-places allows the bucket, and not the parameter " + named.parameter + " of the URL: " +
				"leave it out, and each member takes what its own entry says"
		}
	}
	if p.PathStyle != (p.Endpoint != "") && p.PathStyle != entry.PathStyle {
		return nil, "its --backup-places allows the bucket with another path-style: leave it out"
	}
	permitted := *entry
	permitted.Prefix = p.Prefix
	return &permitted, ""
}

// Same reports whether two URLs name one place: the same directory, or the same prefix of a bucket of one server. Files and
// regions that they name do not count.
func (p *Place) Same(other *Place) bool {
	return p.Directory == other.Directory && p.Bucket == other.Bucket && p.Prefix == other.Prefix &&
		server(p.Endpoint) == server(other.Endpoint)
}

// SameURL reports whether two URLs name one place; false if one is none of a place.
func SameURL(a, b string) bool {
	one, err := Parse(a)
	if err != nil {
		return false
	}
	other, err := Parse(b)
	return err == nil && one.Same(other)
}

// server is an endpoint in the one form by which two are compared.
func server(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || endpoint == "" {
		return ""
	}
	defaults := map[string]string{"https": "443", "http": "80"}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + cmp.Or(u.Port(), defaults[u.Scheme])
}

// within reports whether a directory is another one, or lies below it. Both are clean.
func within(dir, of string) bool {
	rest, err := filepath.Rel(of, dir)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

// Real returns where a directory is behind all links. The error is an objects.ErrNotAllowed if links lead out of the directory
// that allows it, and an objects.ErrNoPlace if it is not there. Of a bucket it returns nothing.
func (p *Place) Real() (string, error) {
	if p.Directory == "" {
		return "", nil
	}
	real, err := filepath.EvalSymlinks(p.Directory)
	if p.within == "" {
		if err != nil {
			real = p.Directory // what opens it says why not
		}
		return real, nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", objects.ErrNoPlace, err)
	}
	allowed, err := filepath.EvalSymlinks(p.within)
	if err != nil {
		return "", fmt.Errorf("%w: %w", objects.ErrNoPlace, err)
	}
	if !within(real, allowed) {
		return "", fmt.Errorf("%w: a link leads from %s to %s, which its --backup-places does not allow", objects.ErrNotAllowed,
			p.Directory, real)
	}
	return real, nil
}
