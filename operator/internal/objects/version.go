package objects

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/base/level"
)

// TooOld says why members would not start with an image, by its tag: it is that of a release which does not know the active
// feature level. Empty: the release knows it, or the tag names none, or one of which this build cannot tell.
func TooOld(image string, active uint32) string {
	tag := tagOf(image)
	release, ok := level.ParseRelease(strings.TrimPrefix(tag, "v"))
	if !ok {
		return ""
	}
	knows, ok := release.Knows()
	if !ok || knows == level.Own || uint32(knows) >= active {
		return ""
	}
	return fmt.Sprintf("release %s knows feature level %d, and the cluster is at feature level %d, which never falls: members "+
		"would not start", release, knows, active)
}

// tagOf is the tag of an image; empty: it has none, or is named by its digest, beside which a tag does not count.
func tagOf(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	if strings.Contains(name, "@") {
		return ""
	}
	_, tag, _ := strings.Cut(name, ":")
	return tag
}

// Split returns the name of an image and its tag; without a tag, where it has none or is named by its digest.
func Split(image string) (name, tag string) {
	if tag = tagOf(image); tag == "" {
		return image, ""
	}
	return strings.TrimSuffix(image, ":"+tag), tag
}

// before11 tells whether an image is of release 1.0, by its tag: that knows no continuous backup, and does not start with a
// flag that it does not know.
func before11(image string) bool { return TooOld(image, uint32(level.Second)) != "" }
