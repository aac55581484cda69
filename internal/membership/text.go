package membership

import (
	"fmt"
	"strings"
)

func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func seconds(ms int64) string {
	if ms < 10_000 {
		return fmt.Sprintf("%d.%d s", ms/1000, ms%1000/100)
	}
	return fmt.Sprintf("%d s", ms/1000)
}

func bytes(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, at := float64(n), 0
	for value >= 1024 && at < len(units)-1 {
		value, at = value/1024, at+1
	}
	if at == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[at])
}
