{{/* Rules between values, which the schema cannot express. */}}

{{- define "extender.validateValues" -}}
{{- if and .Values.plugins.entryPoints (not .Values.plugins.modules) -}}
{{- fail "plugins.entryPoints: needs plugins.modules, which is empty" -}}
{{- end -}}
{{- if and (contains `"Coscheduling"` (toJson .Values.scheduler.config)) (not .Values.permissions.coscheduling) -}}
{{- fail "permissions.coscheduling: must be true, because scheduler.config enables the plugin Coscheduling" -}}
{{- end -}}
{{- if eq .Values.mode "beside" -}}
{{- $ports := list .Values.extender.port .Values.metrics.port .Values.metrics.extenderPort -}}
{{- if ne (len (uniq $ports)) 3 -}}
{{- fail (printf "extender.port, metrics.port, metrics.extenderPort: must differ in mode beside, because they are ports of one pod: %v" $ports) -}}
{{- end -}}
{{- include "extender.validateProfiles" (list "kubeScheduler.profiles" .Values.kubeScheduler.profiles .Values.schedulerName) -}}
{{- end -}}
{{- if ne .Values.mode "service" -}}
{{- include "extender.validateProfiles" (list "scheduler.config.profiles" .Values.scheduler.config.profiles .Values.schedulerName) -}}
{{- with .Values.leaderElection -}}
{{- include "extender.validateShorter" (list "renewDeadline" .renewDeadline "leaseDuration" .leaseDuration) -}}
{{- include "extender.validateShorter" (list "retryPeriod" .retryPeriod "renewDeadline" .renewDeadline) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* One of the profiles must have the name `schedulerName`. Argument: (list valueName profiles schedulerName). */}}
{{- define "extender.validateProfiles" -}}
{{- $wanted := index . 2 -}}
{{- $names := list -}}
{{- range index . 1 }}{{- $names = append $names (default "default-scheduler" .schedulerName) }}{{- end -}}
{{- if and $names (not (has $wanted $names)) -}}
{{- fail (printf "%s: must have a profile for schedulerName (%s); has %s" (index . 0) $wanted (join ", " $names)) -}}
{{- end -}}
{{- end -}}

{{/* The first duration must be shorter than the second. Argument: (list valueName duration valueName duration). */}}
{{- define "extender.validateShorter" -}}
{{- $zero := toDate "2006" "2000" -}}
{{- if not ((dateModify (index . 3) $zero).After (dateModify (index . 1) $zero)) -}}
{{- fail (printf "leaderElection.%s: must be less than leaderElection.%s (%s), not %s" (index . 0) (index . 2) (index . 3) (index . 1)) -}}
{{- end -}}
{{- end -}}
