package observed

import (
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/page"
)

// Ends says until when a certificate is good, by a clock in Unix milliseconds, and the class of its colour; empty: there is
// time. The colours have the bounds of the doctor: a tenth of its life, and a hundredth. A certificate whose beginning is not
// known, such as a revocation list, has a colour only once it has ended.
func Ends(c *quoratepb.ObservedCertificate, nowMS int64) (text, look string) {
	left, life := c.GetUntilMs()-nowMS, c.GetUntilMs()-c.GetFromMs()
	if left <= 0 {
		return "ended " + page.Duration(time.Duration(-left)*time.Millisecond) + " ago", "bad"
	}
	text = "in " + page.Duration(time.Duration(left)*time.Millisecond)
	switch {
	case c.GetFromMs() == 0:
	case left <= life/100:
		look = "bad"
	case left <= life/10:
		look = "warn"
	}
	return text, look
}

// Certificate names a certificate: the certificate for clients.
func Certificate(c *quoratepb.ObservedCertificate) string {
	return strings.ReplaceAll(c.GetWhat(), "-", " ") + " for " + c.GetPort() + "s"
}
