package doctor

import (
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
)

// Texts of members are cut to these lengths.
const (
	longestSink    = 120
	longestTrouble = 200
)

// audits are outputs of records of calls.
func (p *patient) audits() (all []Finding) {
	for _, s := range p.answered() {
		one := []string{s.name()}
		for _, sink := range s.o.GetAudit() {
			name, why := printable.Text(sink.GetName(), longestSink), ""
			if sink.GetTrouble() != "" {
				why = " (" + printable.Text(sink.GetTrouble(), longestTrouble) + ")"
			}
			if sink.GetRequired() && sink.GetBlocked() {
				all = append(all, found(AuditBlocked, NextFailure, one, "quorate audit policy show", "%s refuses the "+
					"calls that its "+
					"audit's policy records, since the required output %s takes no records%s; repair it, or set a policy "+
					"as the exempt "+
					"user", s.name(), name, why))
			}
			if n := sink.GetDropped(); n > 0 {
				all = append(all, found(AuditDrops, SlowerThanIs, one, "quorate audit policy show", "%s dropped %s of "+
					"calls in the "+
					"window, since the output %s does not take them fast "+
					"enough%s", s.name(), plural.Of(n, "record"), name, why))
			}
		}
	}
	return all
}
