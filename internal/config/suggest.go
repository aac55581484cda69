package config

import "strings"

// suggestFlag returns a hint for an unknown flag, beginning with a separator, or nothing.
func suggestFlag(name string) string {
	if rest, ok := strings.CutPrefix(name, "experimental-"); ok {
		if find(rest) != nil {
			return "; etcd 3.7 calls it --" + rest
		}
		if find("feature-gates") != nil && gateOfFlag(rest) != "" {
			return "; etcd 3.7 has --feature-gates=" + gateOfFlag(rest) + "=true instead"
		}
	}
	var names []string
	for i := range settings {
		names = append(names, settings[i].name)
	}
	names = append(names, "config-file", "help", "version")
	if near := Nearest(name, names); near != "" {
		return "; did you mean --" + near + "?"
	}
	return "; see quorate --help"
}

// gateOfFlag finds the gate that replaced an experimental flag of older versions.
func gateOfFlag(name string) string {
	flat := strings.ReplaceAll(strings.TrimPrefix(name, "enable-"), "-", "")
	for _, g := range gates {
		if strings.EqualFold(g.name, flat) || strings.EqualFold(g.name, flat+"Persist") {
			return g.name
		}
	}
	return ""
}

// Nearest returns the candidate that a mistyped word most probably meant, empty if none is near.
func Nearest(word string, candidates []string) string {
	best, bestAt := "", max(2, len(word)/4)+1
	for _, c := range candidates {
		if d := distance(word, c); d < bestAt {
			best, bestAt = c, d
		}
	}
	if best == "" && len(word) >= 4 {
		for _, c := range candidates {
			if strings.HasPrefix(c, word) {
				return c
			}
		}
	}
	return best
}

// distance counts the letters to insert, delete or change to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
