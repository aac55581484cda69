// Package lobby bounds connections of which nobody knows yet who they are or what they want. When one comes too many, an
// older one has to go, so that a flood of silent connections keeps nobody out who speaks.
package lobby
