package audit

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/console/page"
)

// checkView is whether a call would be recorded, and by which rule.
type checkView struct {
	User, Operation, Key string // as they were typed
	Operations           []string
	Asked                bool
	Fault                string
	Recorded             bool
	Why                  string
}

// check asks package audit itself, with the policy that is set.
func check(ctx context.Context, r *page.Request) (any, error) {
	v := &checkView{User: page.KeyField(r.Query.Get("caller")), Operation: r.Query.Get("call"),
		Key: page.KeyField(r.Query.Get("key")), Operations: audit.Ops(),
		Asked: r.Query.Has("call")}
	if !v.Asked {
		return v, nil
	}
	op, ok := audit.ParseOp(v.Operation)
	key, good := page.KeyOf(r.Query.Get("key"))
	user, sound := page.KeyOf(r.Query.Get("caller"))
	switch {
	case !ok:
		v.Fault = "There is no operation " + page.Name(v.Operation) + "."
		return v, nil
	case !good || !sound:
		v.Fault = `A text that begins with a quote has escapes such as \x00, and ends with a quote.`
		return v, nil
	}
	_, version, text, odd, err := policyOf(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case odd != nil:
		v.Recorded, v.Why = true, "a later build wrote the policy: this one records every call"
		return v, nil
	case version == 0:
		v.Why = "no policy is set"
		return v, nil
	}
	p, err := audit.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	e := &audit.Event{Time: r.Now, User: string(user), Op: op}
	if len(key) > 0 {
		e.Parts = []audit.Part{{Key: key}}
	}
	level, shape := p.Match(e)
	v.Recorded = level != audit.None
	switch n := p.Which(e); {
	case n < 0:
		v.Why = "no rule matches it"
	case v.Recorded:
		v.Why = fmt.Sprintf("rule %d: %s; keys are written %s", n+1, levelAbouts[level.String()], shapeWords[shape.String()])
	default:
		v.Why = fmt.Sprintf("rule %d leaves it out", n+1)
	}
	return v, nil
}
