package limits

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
	"github.com/quorate/quorate/internal/kv"
)

// The kinds of keys that a form offers.
const (
	kindAny    = "any" // not only keys: the grants of leases of the user, too
	kindPrefix = "prefix"
	kindAll    = "all"
)

// mostField bounds what a field of a form may have.
const mostField = 2 << 10

// field is a bound in the form.
type field struct {
	Name, Label, Unit, Value string
}

// asked is a limit as a reader typed it.
type asked struct {
	Name, User, Keys, Prefix string
	Fields                   []field
}

// labels are those of the bounds, with their units, in the order of wording.LimitBounds.
var labels = [][2]string{{"Writes", "a second, at each member"}, {"Bytes written", "a second, at each member"},
	{"Reads", "a second, at each member"}, {"Bytes read", "a second, at each member"}, {"Largest value", "in bytes"},
	{"Keys and values", "in bytes, in the cluster"}, {"Number of keys", "in the cluster"}}

// askedIn reads a form, or a query with its fields.
func askedIn(q url.Values) asked {
	a := asked{Name: q.Get("name"), User: page.KeyField(q.Get("user")), Keys: q.Get("keys"),
		Prefix: page.KeyField(q.Get("prefix"))}
	if !slices.Contains([]string{kindAny, kindPrefix, kindAll}, a.Keys) {
		a.Keys = kindAny
		if a.Prefix != "" {
			a.Keys = kindPrefix
		}
	}
	for i, b := range wording.LimitBounds {
		a.Fields = append(a.Fields, field{b.Flag, labels[i][0], labels[i][1], q.Get(b.Flag)})
	}
	return a
}

// query is the opposite of askedIn.
func (a *asked) query() url.Values {
	q := url.Values{"name": {a.Name}, "user": {a.User}, "keys": {a.Keys}, "prefix": {a.Prefix}}
	for _, f := range a.Fields {
		q.Set(f.Name, f.Value)
	}
	return q
}

// formOf is a limit that exists as a form has it.
func formOf(l *quoratepb.Limit) asked {
	a := asked{Name: l.GetName(), Keys: kindAny}
	if l.GetUser() != "" {
		a.User = page.KeyName([]byte(l.GetUser()))
	}
	switch {
	case len(l.GetPrefix()) > 0:
		a.Keys, a.Prefix = kindPrefix, page.KeyName(l.GetPrefix())
	case l.Prefix != nil:
		a.Keys = kindAll
	}
	for i, b := range wording.LimitBounds {
		f := field{Name: b.Flag, Label: labels[i][0], Unit: labels[i][1]}
		if most := *b.Field(l); most != nil {
			f.Value = typedFigure(*most, b.Bytes)
		}
		a.Fields = append(a.Fields, f)
	}
	return a
}

// typedFigure is a number as ParseBound reads it again.
func typedFigure(n int64, size bool) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if one := int64(1) << (10 * (4 - i)); size && n >= one && n%one == 0 {
			return fmt.Sprintf("%d%s", n/one, unit)
		}
	}
	return fmt.Sprint(n)
}

// limit is what was asked for. Its error is a sentence for the reader.
func (a *asked) limit() (*quoratepb.Limit, error) {
	user, ok := page.KeyOf(a.User)
	if !ok || !utf8.Valid(user) {
		return nil, page.FormError(`A user that begins with a quote has escapes such as \u00e4, and ends with a quote.`)
	}
	l := &quoratepb.Limit{Name: a.Name, User: string(user)}
	rule := &kv.LimitRule{Name: a.Name, User: string(user)}
	for _, text := range []string{a.Name, a.User, a.Prefix} {
		if len(text) > mostField {
			return nil, page.FormError(fmt.Sprintf("A field has more than %d bytes. Nothing was changed.", mostField))
		}
	}
	switch a.Keys {
	case kindAll:
		l.Prefix = []byte{}
	case kindPrefix:
		prefix, ok := page.KeyOf(a.Prefix)
		switch {
		case !ok:
			return nil, page.FormError(`A prefix that begins with a quote has escapes such as \x00, and ends with a quote.`)
		case len(prefix) == 0:
			return nil, page.FormError("The prefix is missing: type it, or choose every key.")
		}
		l.Prefix = prefix
	}
	rule.Prefixed, rule.Prefix = l.Prefix != nil, l.Prefix
	for i, b := range wording.LimitBounds {
		text := a.Fields[i].Value
		if text == "" {
			continue
		}
		n, err := wording.ParseBound(text, b.Bytes)
		if err != nil {
			return nil, page.FormError(fmt.Sprintf("%s, %s: %v.", a.Fields[i].Label, page.Name(text), err))
		}
		*b.Field(l) = &n
		rule.Bounds[i] = kv.Bound{Set: true, Most: n}
	}
	if problem := rule.Problem(); problem != "" {
		return nil, page.FormError(page.Text(problem) + ".")
	}
	return l, nil
}

// formView is the form with what was typed, or what the limit is that is to be changed.
type formView struct {
	asked
	Known []string // the names of limits that there are
}

// form shows the fields.
func form(ctx context.Context, r *page.Request) (any, error) {
	v := formView{asked: askedIn(r.Query)}
	states, err := limitsOf(ctx, r)
	if err != nil {
		return nil, err
	}
	if found := find(states, r.Query.Get("from")); found != nil {
		v.asked = formOf(found.GetLimit())
	}
	return v, nil
}

func limitsOf(ctx context.Context, r *page.Request) ([]*quoratepb.LimitState, error) {
	answer, err := quoratepb.NewLimitsClient(r.Conn).ListLimits(ctx, &quoratepb.ListLimitsRequest{})
	return answer.GetLimits(), err
}

// find returns the limit of a name; nil: there is none.
func find(states []*quoratepb.LimitState, name string) *quoratepb.LimitState {
	at := slices.IndexFunc(states, func(s *quoratepb.LimitState) bool { return name != "" && s.GetLimit().GetName() == name })
	if at < 0 {
		return nil
	}
	return states[at]
}

// sumOf tells what a preview has shown from what is there later; of none it is a sum, too.
func sumOf(state *quoratepb.LimitState) string {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(state.GetLimit())
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

func setTitle(r *page.Request) string {
	if r.Query.Get("from") != "" {
		return "Change a limit"
	}
	return ""
}
