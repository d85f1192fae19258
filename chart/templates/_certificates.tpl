{{/* Certificates of mode `service`. */}}

{{- define "extender.serverSecret" -}}
{{- if eq .Values.certificates.source "existing" -}}
{{- required "certificates.existingSecret: must name a Secret with tls.crt, tls.key and ca.crt where certificates.source is existing" .Values.certificates.existingSecret -}}
{{- else -}}
{{- include "extender.fullname" . }}-tls
{{- end -}}
{{- end -}}

{{- define "extender.clientSecret" -}}
{{- include "extender.fullname" . }}-client
{{- end -}}

{{/* DNS names in the server certificate, as a JSON list. */}}
{{- define "extender.serverNames" -}}
{{- $name := include "extender.fullname" . -}}
{{- $names := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) -}}
{{- $names = append $names (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- range .Values.certificates.extraNames }}{{- if not (regexMatch "^[0-9.]+$|:" .) }}{{- $names = append $names . }}{{- end }}{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* IP addresses in the server certificate, as a JSON list. */}}
{{- define "extender.serverAddresses" -}}
{{- $addresses := list "127.0.0.1" -}}
{{- with .Values.service.clusterIP }}{{- $addresses = append $addresses . }}{{- end -}}
{{- range .Values.certificates.extraNames }}{{- if regexMatch "^[0-9.]+$|:" . }}{{- $addresses = append $addresses . }}{{- end }}{{- end -}}
{{- toJson $addresses -}}
{{- end -}}

{{/*
Certificates that stay must have the names of the values. Argument: (list $ names), with the names that the certificates
were made with: annotations of the server's Secret.
*/}}
{{- define "extender.validateCertificateNames" -}}
{{- $root := index . 0 -}}
{{- $names := index . 1 -}}
{{- $server := include "extender.serverSecret" $root -}}
{{- $client := include "extender.clientSecret" $root -}}
{{- $remedy := printf "delete the Secrets %s and %s before the upgrade to make new certificates, and copy them to kube-scheduler" $server $client -}}
{{- if hasKey $names "certificate/names" -}}
{{- $made := splitList "," (get $names "certificate/names") -}}
{{- range $root.Values.certificates.extraNames -}}
{{- if not (has . $made) -}}
{{- fail (printf "certificates.extraNames: the certificate in the Secret %s does not have %s; %s" $server . $remedy) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $caller := get $names "certificate/client-name" -}}
{{- if and $caller (not (has $caller $root.Values.service.allowedClientNames)) -}}
{{- fail (printf "service.allowedClientNames: must have %s, the name of the certificate in the Secret %s; or %s" $caller $client $remedy) -}}
{{- end -}}
{{- end -}}
