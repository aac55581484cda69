package labweb_test

import (
	"math"
	"regexp"
	"strconv"
	"testing"
)

// checkContrast checks the colours of texts against the grounds on which they stand: WCAG 2.2 wants 4.5 for texts, 3 for pictures.
func checkContrast(t *testing.T, root string) {
	t.Helper()
	colours := map[string][2]string{}
	for _, match := range regexp.MustCompile(`(--[a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);`).FindAllStringSubmatch(root, -1) {
		colours[match[1]] = [2]string{match[2], match[3]}
	}
	pairs := []struct {
		text, ground string
		least        float64
	}{
		{"--fg", "--bg", 7}, {"--fg", "--raised", 7}, {"--muted", "--bg", 4.5}, {"--muted", "--raised", 4.5}, {"--accent-fg", "--accent", 4.5},
		{"--accent", "--bg", 4.5}, {"--good", "--bg", 4.5}, {"--bad", "--bg", 4.5}, {"--bad", "--raised", 4.5}, {"--warn", "--raised", 3},
	}
	for band := range 8 {
		pairs = append(pairs, struct {
			text, ground string
			least        float64
		}{"--fg", "--band-" + strconv.Itoa(band), 4.5})
	}
	for _, p := range pairs {
		for scheme, name := range []string{"light", "dark"} {
			got := contrast(colours[p.text][scheme], colours[p.ground][scheme])
			if !(got >= p.least) { // NaN, too: a colour is missing
				t.Errorf("%s: %s on %s has contrast %.1f, less than %.1f", name, p.text, p.ground, got, p.least)
			}
		}
	}
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(colour string) float64 {
	if len(colour) != 7 {
		return math.NaN()
	}
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			return math.NaN()
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}
