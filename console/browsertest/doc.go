// Package browsertest plays the console in Chromium on a running platform: by mouse and keyboard, in both languages and
// themes, wide and on a phone, with axe. It is a module of its own, so that no program depends on its libraries.
package browsertest
