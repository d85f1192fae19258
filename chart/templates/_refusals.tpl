{{/* Values that contradict each other, which the schema cannot see. */}}

{{- define "extender.refusals" -}}
{{- if and .Values.plugins.entryPoints (not .Values.plugins.modules) -}}
{{- fail "plugins.entryPoints: names plugins of plugins.modules, which is empty" -}}
{{- end -}}
{{- if eq .Values.mode "beside" -}}
{{- $ports := list .Values.extender.port .Values.metrics.port .Values.metrics.extenderPort -}}
{{- if ne (len (uniq $ports)) 3 -}}
{{- fail (printf "extender.port, metrics.port, metrics.extenderPort: are ports of one pod in mode beside and must differ, not %v" $ports) -}}
{{- end -}}
{{- include "extender.refuseProfiles" (list "kubeScheduler.profiles" .Values.kubeScheduler.profiles .Values.schedulerName) -}}
{{- end -}}
{{- if ne .Values.mode "service" -}}
{{- include "extender.refuseProfiles" (list "scheduler.config.profiles" .Values.scheduler.config.profiles .Values.schedulerName) -}}
{{- with .Values.leaderElection -}}
{{- include "extender.refuseLonger" (list "renewDeadline" .renewDeadline "leaseDuration" .leaseDuration) -}}
{{- include "extender.refuseLonger" (list "retryPeriod" .retryPeriod "renewDeadline" .renewDeadline) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Pods ask for `schedulerName`, so one of the profiles must have it; of (list value profiles schedulerName). */}}
{{- define "extender.refuseProfiles" -}}
{{- $wanted := index . 2 -}}
{{- $names := list -}}
{{- range index . 1 }}{{- $names = append $names (default "default-scheduler" .schedulerName) }}{{- end -}}
{{- if and $names (not (has $wanted $names)) -}}
{{- fail (printf "%s: has profiles for %s, and none for schedulerName, which is %s" (index . 0) (join ", " $names) $wanted) -}}
{{- end -}}
{{- end -}}

{{/* Of (list value duration value duration) the first must be the shorter. */}}
{{- define "extender.refuseLonger" -}}
{{- $zero := toDate "2006" "2000" -}}
{{- if not ((dateModify (index . 3) $zero).After (dateModify (index . 1) $zero)) -}}
{{- fail (printf "leaderElection.%s: must be less than leaderElection.%s (%s), not %s" (index . 0) (index . 2) (index . 3) (index . 1)) -}}
{{- end -}}
{{- end -}}
